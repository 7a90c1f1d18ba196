// SPDX-License-Identifier: MIT
// A D of E2M1 codes with scales: its shape, the layout of its scales and their rule.
#include <cinttypes>

#include "host/base/operand_format.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

const char* name_of_d(const nvfp4_gemm_desc& g) {
  return enumerator_name(Enumeration::type, g.d_type);
}

nvfp4_status not_with_d(const nvfp4_gemm_desc& g, const char* field, const char* wanted) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s must be %s where d_type = %s", field, wanted,
              name_of_d(g));
}

nvfp4_status check_rule(const nvfp4_gemm_desc& g, ScaleType scale) {
  if (scale == ScaleType::ue4m3) {
    if (g.d_scale_rule == NVFP4_SCALE_RULE_DEFAULT) return NVFP4_SUCCESS;
    return not_with_d(g, "d_scale_rule", "NVFP4_SCALE_RULE_DEFAULT");
  }
  if (g.d_tensor_scale == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "d_tensor_scale must be NULL where d_type = %s: such scales reach every number of "
              "fp32",
              name_of_d(g));
}

nvfp4_status check_scales_stride(const nvfp4_gemm_desc& g, int32_t format) {
  constexpr const char* kName = "d_scales_batch_stride_bytes";
  NVFP4_TRY(rule_range(kName, g.d_scales_batch_stride_bytes, INT64_MAX));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, kName, g.d_scales_batch_stride_bytes,
                          kAddressAlignment, ""));
  int64_t bytes;
  if (!scale_bytes_for(g.m, g.n, g.d_scale_layout, format, &bytes)) return too_far("d_scales");
  return rule_at_least(kName, g.d_scales_batch_stride_bytes, "nvfp4_scale_bytes_for()", bytes);
}

}  // namespace

nvfp4_status check_scaled_d(const nvfp4_gemm_desc& g, int64_t batches) {
  const OperandFormat* const format = format_of_d(g.d_type);
  if (format == nullptr) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "n", g.n, format->block,
                          ", the elements that share a scale of D"));
  if (g.cd_order != NVFP4_CD_ORDER_ROW_MAJOR) {
    return not_with_d(g, "cd_order", "NVFP4_CD_ORDER_ROW_MAJOR");
  }
  NVFP4_TRY(rule_scale_layout("d_scale_layout", g.d_scale_layout));
  NVFP4_TRY(check_rule(g, format->scale));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "d_ld", g.d_ld, 2, ""));
  if (batches == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "d_batch_stride", g.d_batch_stride, 2, ""));
  return check_scales_stride(g, format->format);
}

}  // namespace nvfp4
