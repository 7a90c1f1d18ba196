// SPDX-License-Identifier: MIT
// The arrays that one call reads and writes, by the names of their fields. Every function of the
// library lists its arrays here, so that one comparison, apart(), refuses any overlap.
#pragma once

#include <cinttypes>

#include "host/base/packing.h"
#include "host/problem/enumeration.h"
#include "host/problem/rule.h"

namespace nvfp4 {

enum class Use { read, written };

class Buffers {
 public:
  // An array that ends within the address space. NULL counts as address 0, for questions that give
  // no addresses.
  nvfp4_status add(const char* name, const void* address, int64_t bytes, Use use);
  // The same, but NULL means that there is no such array.
  nvfp4_status add_if_given(const char* name, const void* address, int64_t bytes, Use use);
  // The same, but the array must be given and aligned.
  nvfp4_status add_aligned(const char* name, const void* address, int64_t bytes, uint64_t alignment,
                           Use use);
  // A matrix whose last row ends after k elements.
  nvfp4_status add_matrix(const char* name, const void* address, int64_t rows, int64_t ld,
                          int64_t k, int64_t element_bytes, Use use);
  nvfp4_status add_codes(const void* address, int64_t rows, int64_t ld, int64_t k, Use use);
  nvfp4_status add_scales(const char* name, const void* address, int64_t rows, int64_t k,
                          int32_t layout, int32_t format, Use use);
  // Checks that no written array shares a byte with another array. The message names the later one
  // of the two first, so outputs are added after inputs.
  nvfp4_status apart() const;
  // The same for the array that was added last.
  nvfp4_status last_apart() const;

 private:
  nvfp4_status apart_from_earlier(size_t index) const;

  struct Buffer {
    const char* name;
    AddressRange range;
    Use use;
  };
  static constexpr size_t kMost = 32;  // a gated grouped product has 25
  Buffer buffers_[kMost];
  size_t count_ = 0;
};

// What the descriptors of both quantizers say of codes and scales: these lie apart, or they are
// packed tokens.

constexpr uint64_t kPackedAlignment = 16;

// Packing, format and layout of the scales.
template <typename Desc>
nvfp4_status check_codes_kind(const Desc& q) {
  NVFP4_TRY(rule_enumerator("packing", q.packing, Enumeration::packing,
                            only(NVFP4_PACKING_NONE) | only(NVFP4_PACKING_SM90_TOKENS_1)));
  if (q.packing == NVFP4_PACKING_NONE) return rule_scale_layout("scale_layout", q.scale_layout);
  NVFP4_TRY(rule_enumerator("scale_layout", q.scale_layout, Enumeration::scale_layout,
                            every(Enumeration::scale_layout)));
  if (q.format == NVFP4_OPERAND_FORMAT_NVFP4) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "format = %s must be NVFP4_OPERAND_FORMAT_NVFP4 where packing = %s",
              enumerator_name(Enumeration::operand_format, q.format),
              enumerator_name(Enumeration::packing, q.packing));
}

template <typename Desc>
nvfp4_status check_codes_ld(const Desc& q) {
  if (q.packing == NVFP4_PACKING_NONE) {
    NVFP4_TRY(rule_at_least("codes_ld", q.codes_ld, "k", q.k));
    return rule_multiple(NVFP4_STATUS_MISALIGNED, "codes_ld", q.codes_ld, 2, "");
  }
  if (q.codes_ld == 0) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "codes_ld = %" PRId64 " must be 0 where packing = %s",
              q.codes_ld, enumerator_name(Enumeration::packing, q.packing));
}

template <typename Desc>
nvfp4_status add_codes_and_scales(const Desc& q, Buffers* buffers) {
  if (q.packing == NVFP4_PACKING_NONE) {
    NVFP4_TRY(buffers->add_codes(q.codes, q.rows, q.codes_ld, q.k, Use::written));
    return buffers->add_scales("scales", q.scales, q.rows, q.k, q.scale_layout, q.format,
                               Use::written);
  }
  if (q.scales != nullptr) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "scales = %p must be NULL where packing = %s", q.scales,
                enumerator_name(Enumeration::packing, q.packing));
  }
  int64_t bytes;
  if (!packed_bytes(q.rows, q.k, q.packing, q.format, &bytes)) return too_far("codes");
  return buffers->add_aligned("codes", q.codes, bytes, kPackedAlignment, Use::written);
}

}  // namespace nvfp4
