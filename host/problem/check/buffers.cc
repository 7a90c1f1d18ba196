// SPDX-License-Identifier: MIT
#include "host/problem/check/buffers.h"

namespace nvfp4 {

nvfp4_status Buffers::add(const char* name, const void* address, int64_t bytes, Use use) {
  Buffer& buffer = buffers_[count_];
  buffer.name = name;
  buffer.use = use;
  NVFP4_TRY(rule_address_range(name, address, bytes, &buffer.range));
  ++count_;
  return NVFP4_SUCCESS;
}

nvfp4_status Buffers::add_if_given(const char* name, const void* address, int64_t bytes, Use use) {
  return address == nullptr ? NVFP4_SUCCESS : add(name, address, bytes, use);
}

nvfp4_status Buffers::add_aligned(const char* name, const void* address, int64_t bytes,
                                  uint64_t alignment, Use use) {
  NVFP4_TRY(rule_not_null(name, address));
  NVFP4_TRY(rule_aligned(name, address, alignment));
  return add(name, address, bytes, use);
}

nvfp4_status Buffers::add_matrix(const char* name, const void* address, int64_t rows, int64_t ld,
                                 int64_t k, int64_t element_bytes, Use use) {
  int64_t elements, bytes;
  if (!extent(rows, ld, k, &elements) || !multiply(elements, element_bytes, &bytes)) {
    return too_far(name);
  }
  return add_aligned(name, address, bytes, static_cast<uint64_t>(element_bytes), use);
}

nvfp4_status Buffers::add_codes(const void* address, int64_t rows, int64_t ld, int64_t k, Use use) {
  int64_t codes;
  if (!extent(rows, ld, k, &codes)) return too_far("codes");
  return add_aligned("codes", address, codes / 2, 1, use);
}

nvfp4_status Buffers::add_scales(const char* name, const void* address, int64_t rows, int64_t k,
                                 int32_t layout, int32_t format, Use use) {
  int64_t bytes;
  if (!scale_bytes_for(rows, k, layout, format, &bytes)) return too_far(name);
  return add_aligned(name, address, bytes, 1, use);
}

// Inline, because a call for each array cost a run of a plan 35 ns of 500.
inline nvfp4_status Buffers::apart_from_earlier(size_t index) const {
  const Buffer& a = buffers_[index];
  for (size_t i = 0; i < index; ++i) {
    const Buffer& b = buffers_[i];
    if (a.use == Use::read && b.use == Use::read) continue;
    NVFP4_TRY(rule_apart(a.name, a.range, b.name, b.range));
  }
  return NVFP4_SUCCESS;
}

nvfp4_status Buffers::apart() const {
  for (size_t i = 1; i < count_; ++i) NVFP4_TRY(apart_from_earlier(i));
  return NVFP4_SUCCESS;
}

nvfp4_status Buffers::last_apart() const { return apart_from_earlier(count_ - 1); }

}  // namespace nvfp4
