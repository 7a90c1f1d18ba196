// SPDX-License-Identifier: MIT
// The single rules that the files of check/ put in order. Each message has the field, its value and
// the rule.
#pragma once

#include <cstring>

#include "host/base/size.h"
#include "host/base/status.h"

namespace nvfp4 {

// Accepts 0 to limit. Below is INVALID_VALUE, above is LIMIT.
nvfp4_status rule_range(const char* name, int64_t value, int64_t limit);
nvfp4_status rule_at_least(const char* name, int64_t value, const char* what, int64_t least);
// The message names the nearest multiples.
nvfp4_status rule_multiple(nvfp4_status status, const char* name, int64_t value, int64_t of,
                           const char* why);
nvfp4_status rule_switch(const char* name, int32_t value);  // 0 or 1
nvfp4_status rule_not_null(const char* name, const void* pointer);
nvfp4_status rule_aligned(const char* name, const void* pointer, uint64_t bytes);
nvfp4_status rule_scale_layout(const char* name, int32_t layout);
nvfp4_status rule_address_range(const char* name, const void* first, int64_t bytes,
                                AddressRange* range);
nvfp4_status rule_apart(const char* name, const AddressRange& range, const char* other_name,
                        const AddressRange& other);
// The caller's sizeof(type) must not be below the smallest one ever released, and bytes that this
// version does not know must be zero.
nvfp4_status rule_struct_size(const void* structure, uint64_t size, uint64_t least, uint64_t known,
                              const char* type);
// The same for a struct that the library fills, whose bytes may hold anything before.
nvfp4_status rule_result_size(uint64_t size, uint64_t known, const char* type);
// Copies the caller's struct, with 0 in the fields that it is too short to have.
template <typename T>
nvfp4_status read_struct(const T& given, uint64_t least, const char* type, T* known) {
  NVFP4_TRY(rule_struct_size(&given, given.struct_size, least, sizeof(T), type));
  *known = T{};
  memcpy(known, &given, given.struct_size < sizeof(T) ? given.struct_size : sizeof(T));
  return NVFP4_SUCCESS;
}
nvfp4_status rule_tensor_scale(float tensor_scale);
nvfp4_status rule_zeros(const char* name, const int32_t* values, size_t count);
template <size_t kCount>
nvfp4_status rule_reserved(const int32_t (&reserved)[kCount]) {
  return rule_zeros("reserved", reserved, kCount);
}
nvfp4_status too_far(const char* name);

}  // namespace nvfp4
