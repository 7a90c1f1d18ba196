// SPDX-License-Identifier: MIT
// Features that the structs have and this version has not: NULL, 0 or off, or refused by name.
#include <cinttypes>

#include "host/check/fields.h"
#include "host/formats.h"
#include "host/rule.h"

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

nvfp4_status check_absent_in_kernels(const nvfp4_gemm_desc& g) {
  const struct {
    const char* name;
    const void* value;
  } pointers[] = {
      {"a_tensor_scale", g.a_tensor_scale},
      {"b_tensor_scale", g.b_tensor_scale},
      {"c", g.c},
      {"bias", g.bias},
      {"alpha_device", g.alpha_device},
      {"beta_device", g.beta_device},
  };
  for (const auto& field : pointers) NVFP4_TRY(absent_pointer(field.name, field.value));
  const struct {
    const char* name;
    int64_t value;
  } numbers[] = {
      {"b_tensor_scale_columns", g.b_tensor_scale_columns},
      {"c_ld", g.c_ld},
      {"c_batch_stride", g.c_batch_stride},
  };
  for (const auto& field : numbers) NVFP4_TRY(absent_number(field.name, field.value));
  if (!beta_is_zero(g)) {  // a NaN is none
    return fail(NVFP4_STATUS_NOT_SUPPORTED,
                "beta = %g must be 0: C is not there in version %d.%d.%d", f64_from_f32(g.beta),
                NVFP4_VERSION_NUMBERS);
  }
  return NVFP4_SUCCESS;
}

}  // namespace

nvfp4_status check_switches(const nvfp4_gemm_desc& g) {
  if (g.batch_invariant != 0 && g.batch_invariant != 1) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "batch_invariant = %" PRId32 " is neither 0 nor 1",
                g.batch_invariant);
  }
  for (int i = 0; i < 4; ++i) {
    if (g.reserved[i] != 0) {
      return fail(NVFP4_STATUS_INVALID_VALUE, "reserved[%d] = %" PRId32 " must be 0", i,
                  g.reserved[i]);
    }
  }
  NVFP4_TRY(rule_range("b_tensor_scale_columns", g.b_tensor_scale_columns, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "b_tensor_scale_columns",
                       g.b_tensor_scale_columns, kScaleColumnsMultiple, "");
}

nvfp4_status check_absent(const nvfp4_gemm_desc& g, Caller caller) {
  NVFP4_TRY(absent_pointer("d_scales", g.d_scales));
  NVFP4_TRY(absent_pointer("d_tensor_scale", g.d_tensor_scale));
  NVFP4_TRY(absent_number("d_scales_batch_stride_bytes", g.d_scales_batch_stride_bytes));
  return caller == Caller::reference ? NVFP4_SUCCESS : check_absent_in_kernels(g);
}

nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x) {
  const struct {
    const char* name;
    const void* value;
  } pointers[] = {
      {"a_tensor_scale", x.a_tensor_scale},
      {"b_tensor_scale", x.b_tensor_scale},
      {"c", x.c},
      {"d_scales", x.d_scales},
      {"d_tensor_scale", x.d_tensor_scale},
      {"bias", x.bias},
      {"alpha_device", x.alpha_device},
      {"beta_device", x.beta_device},
  };
  for (const auto& field : pointers) NVFP4_TRY(absent_pointer(field.name, field.value));
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
