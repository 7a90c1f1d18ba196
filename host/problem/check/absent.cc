// SPDX-License-Identifier: MIT
// Features that the structs have and this version has not: NULL, 0 or off, or refused by name.
#include <cinttypes>

#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kScaleColumnsMultiple = 64;

#define NVFP4_VERSION_NUMBERS NVFP4_VERSION_MAJOR, NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH

nvfp4_status absent_pointer(const char* name, const void* value) {
  if (value == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_NOT_SUPPORTED, "%s = %p must be NULL: not there in version %d.%d.%d",
              name, value, NVFP4_VERSION_NUMBERS);
}

nvfp4_status absent_number(const char* name, int64_t value) {
  if (value == 0) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "%s = %" PRId64 " must be 0: not there in version %d.%d.%d", name, value,
              NVFP4_VERSION_NUMBERS);
}

}  // namespace

nvfp4_status check_switches(const nvfp4_gemm_desc& g) {
  if (g.batch_invariant != 0 && g.batch_invariant != 1) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "batch_invariant = %" PRId32 " is neither 0 nor 1",
                g.batch_invariant);
  }
  NVFP4_TRY(rule_reserved(g.reserved));
  NVFP4_TRY(rule_range("b_tensor_scale_columns", g.b_tensor_scale_columns, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "b_tensor_scale_columns",
                       g.b_tensor_scale_columns, kScaleColumnsMultiple, "");
}

nvfp4_status check_absent(const nvfp4_gemm_desc& g) {
  NVFP4_TRY(absent_pointer("d_scales", g.d_scales));
  NVFP4_TRY(absent_pointer("d_tensor_scale", g.d_tensor_scale));
  return absent_number("d_scales_batch_stride_bytes", g.d_scales_batch_stride_bytes);
}

nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x) {
  NVFP4_TRY(absent_pointer("d_scales", x.d_scales));
  return absent_pointer("d_tensor_scale", x.d_tensor_scale);
}

}  // namespace nvfp4
