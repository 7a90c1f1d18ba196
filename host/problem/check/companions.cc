// SPDX-License-Identifier: MIT
// Fields that are given together or not at all.
#include "host/base/formats.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

nvfp4_status check_scalars(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (g.scalar_mode == NVFP4_SCALARS_HOST) {
    NVFP4_TRY(rule_without("alpha_device", g.alpha_device, "scalar_mode", Enumeration::scalars,
                           g.scalar_mode));
    return rule_without("beta_device", g.beta_device, "scalar_mode", Enumeration::scalars,
                        g.scalar_mode);
  }
  NVFP4_TRY(rule_with("alpha_device", g.alpha_device, sizes_alone));
  if (g.c_type == NVFP4_TYPE_NONE) {
    return rule_without("beta_device", g.beta_device, "c_type", Enumeration::type, g.c_type);
  }
  return rule_with("beta_device", g.beta_device, sizes_alone);
}

nvfp4_status check_c(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (g.c_type == NVFP4_TYPE_NONE) {
    NVFP4_TRY(rule_without("c", g.c, "c_type", Enumeration::type, g.c_type));
    if (g.scalar_mode == NVFP4_SCALARS_DEVICE || beta_is_zero(g)) return NVFP4_SUCCESS;
    return fail(NVFP4_STATUS_INVALID_VALUE, "beta = %g must be 0 where c_type = NVFP4_TYPE_NONE",
                f64_from_f32(g.beta));
  }
  return beta_is_zero(g) ? NVFP4_SUCCESS : rule_with("c", g.c, sizes_alone);
}

nvfp4_status check_bias(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (g.bias_type != NVFP4_TYPE_NONE) return rule_with("bias", g.bias, sizes_alone);
  return rule_without("bias", g.bias, "bias_type", Enumeration::type, g.bias_type);
}

}  // namespace

bool beta_is_zero(const nvfp4_gemm_desc& g) {
  return g.scalar_mode == NVFP4_SCALARS_HOST && f32_bits(g.beta) << 1 == 0;
}

bool has_c(const nvfp4_gemm_desc& g, bool sizes_alone) {
  return g.c_type != NVFP4_TYPE_NONE && !beta_is_zero(g) && (g.c != nullptr || sizes_alone);
}

nvfp4_status rule_without(const char* name, const void* pointer, const char* field, Enumeration of,
                          int32_t value) {
  if (pointer == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL where %s = %s", name, pointer,
              field, enumerator_name(of, value));
}

nvfp4_status rule_with(const char* name, const void* pointer, bool sizes_alone) {
  return sizes_alone ? NVFP4_SUCCESS : rule_not_null(name, pointer);
}

nvfp4_status check_a_scales(const nvfp4_gemm_desc& g) {
  if (g.a_type == NVFP4_TYPE_NONE) return NVFP4_SUCCESS;
  return rule_without("a_scales", g.a_scales, "a_type", Enumeration::type, g.a_type);
}

nvfp4_status check_companions(const nvfp4_gemm_desc& g, bool sizes_alone) {
  NVFP4_TRY(check_a_scales(g));
  NVFP4_TRY(check_scalars(g, sizes_alone));
  NVFP4_TRY(check_c(g, sizes_alone));
  NVFP4_TRY(check_bias(g, sizes_alone));
  if (g.a_tensor_scale_rows != 0) {
    NVFP4_TRY(rule_with("a_tensor_scale", g.a_tensor_scale, sizes_alone));
  }
  if (g.b_tensor_scale_columns != 0) {
    NVFP4_TRY(rule_with("b_tensor_scale", g.b_tensor_scale, sizes_alone));
  }
  return check_gated(g, sizes_alone);
}

}  // namespace nvfp4
