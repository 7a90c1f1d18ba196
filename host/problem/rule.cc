// SPDX-License-Identifier: MIT
#include "host/problem/rule.h"

#include <cinttypes>

#include "host/base/formats.h"
#include "host/problem/enumeration.h"

namespace nvfp4 {

nvfp4_status rule_range(const char* name, int64_t value, int64_t limit) {
  if (value < 0) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %" PRId64 " is negative; 0 to %" PRId64, name,
                value, limit);
  }
  if (value > limit) {
    return fail(NVFP4_STATUS_LIMIT, "%s = %" PRId64 " is above %" PRId64, name, value, limit);
  }
  return NVFP4_SUCCESS;
}

nvfp4_status rule_at_least(const char* name, int64_t value, const char* what, int64_t least) {
  if (value >= least) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %" PRId64 " is less than %s = %" PRId64, name,
              value, what, least);
}

nvfp4_status rule_multiple(nvfp4_status status, const char* name, int64_t value, int64_t of,
                           const char* why) {
  if (value % of == 0) return NVFP4_SUCCESS;
  const int64_t below = value / of * of;
  int64_t above;
  if (!add(below, of, &above)) {
    return fail(status, "%s = %" PRId64 " is not a multiple of %" PRId64 "%s; nearest %" PRId64,
                name, value, of, why, below);
  }
  return fail(status,
              "%s = %" PRId64 " is not a multiple of %" PRId64 "%s; nearest %" PRId64
              " or %" PRId64,
              name, value, of, why, below, above);
}

nvfp4_status rule_switch(const char* name, int32_t value) {
  if (value == 0 || value == 1) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %" PRId32 " is neither 0 nor 1", name, value);
}

nvfp4_status rule_not_null(const char* name, const void* pointer) {
  if (pointer != nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_NULL_POINTER, "%s is NULL and is required here", name);
}

nvfp4_status rule_aligned(const char* name, const void* pointer, uint64_t bytes) {
  if (reinterpret_cast<uint64_t>(pointer) % bytes == 0) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_MISALIGNED, "%s = %p is not %" PRIu64 "-byte aligned", name, pointer,
              bytes);
}

nvfp4_status rule_scale_layout(const char* name, int32_t layout) {
  return rule_enumerator(name, layout, Enumeration::scale_layout,
                         only(NVFP4_SCALE_LAYOUT_128X4) | only(NVFP4_SCALE_LAYOUT_LINEAR));
}

nvfp4_status rule_address_range(const char* name, const void* first, int64_t bytes,
                                AddressRange* range) {
  return address_range(first, bytes, range) ? NVFP4_SUCCESS : too_far(name);
}

nvfp4_status rule_apart(const char* name, const AddressRange& range, const char* other_name,
                        const AddressRange& other) {
  if (!range.meets(other)) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_OVERLAP,
              "%s = [0x%" PRIx64 ", 0x%" PRIx64 ") overlaps %s = [0x%" PRIx64 ", 0x%" PRIx64 ")",
              name, range.begin, range.end, other_name, other.begin, other.end);
}

nvfp4_status too_far(const char* name) {
  return fail(NVFP4_STATUS_LIMIT, "the last byte of %s is beyond the address space", name);
}

constexpr uint64_t kMaxStructSize = 4096;

nvfp4_status rule_result_size(uint64_t size, uint64_t known, const char* type) {
  if (size >= known && size <= kMaxStructSize) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_STRUCT,
              "struct_size = %" PRIu64 "; sizeof(%s) is %" PRIu64 ", a newer one at most %" PRIu64,
              size, type, known, kMaxStructSize);
}

// A caller with a newer header is accepted if it leaves every field that this version does not know
// at 0.
nvfp4_status rule_struct_size(const void* structure, uint64_t size, uint64_t least, uint64_t known,
                              const char* type) {
  if (size < least || size > kMaxStructSize) {
    return fail(NVFP4_STATUS_INVALID_STRUCT,
                "struct_size = %" PRIu64 "; sizeof(%s) is %" PRIu64
                ", an older one at least %" PRIu64 ", a newer one at most %" PRIu64,
                size, type, known, least, kMaxStructSize);
  }
  const unsigned char* bytes = static_cast<const unsigned char*>(structure);
  for (uint64_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(NVFP4_STATUS_INVALID_STRUCT,
                  "struct_size = %" PRIu64 ", and byte %" PRIu64
                  " of the struct, which this version does not know, is not 0",
                  size, i);
    }
  }
  return NVFP4_SUCCESS;
}

nvfp4_status rule_tensor_scale(float tensor_scale) {
  const uint32_t bits = f32_bits(tensor_scale);
  if (bits == 0 || bits >= kF32.overflow_code) {  // also refuses negative numbers, infinity and NaN
    return fail(NVFP4_STATUS_INVALID_VALUE, "tensor_scale = %g is not finite and above 0",
                f64_from_f32(tensor_scale));
  }
  return NVFP4_SUCCESS;
}

nvfp4_status rule_zeros(const char* name, const int32_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != 0) {
      return fail(NVFP4_STATUS_INVALID_VALUE, "%s[%zu] = %" PRId32 " must be 0", name, i,
                  values[i]);
    }
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
