// SPDX-License-Identifier: MIT
// The rules of nvfp4_fused_quantize_desc, in the header's order.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/base/operand_format.h"
#include "host/problem/check.h"
#include "host/problem/check/buffers.h"
#include "host/problem/enumeration.h"
#include "host/problem/quantizer.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMostRows = INT32_MAX;

nvfp4_status check_epsilon(const nvfp4_fused_quantize_desc& q) {
  const uint32_t bits = f32_bits(q.epsilon);
  if (q.operation == NVFP4_FUSED_SILU_MUL && bits != 0) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "epsilon = %g must be 0 with NVFP4_FUSED_SILU_MUL",
                f64_from_f32(q.epsilon));
  }
  if (q.operation == NVFP4_FUSED_RMS_NORM && (bits == 0 || bits >= kF32.overflow_code)) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "epsilon = %g is not finite and above 0",
                f64_from_f32(q.epsilon));
  }
  return NVFP4_SUCCESS;
}

nvfp4_status check_numbers(const nvfp4_fused_quantize_desc& q) {
  NVFP4_TRY(rule_range("rows", q.rows, kMostRows));
  NVFP4_TRY(rule_range("k", q.k, kMostRows));
  NVFP4_TRY(check_format(q.format, q.scale_rule));
  NVFP4_TRY(rule_enumerator("scale_rule", q.scale_rule, Enumeration::scale_rule,
                            every(Enumeration::scale_rule) & ~only(NVFP4_SCALE_RULE_4OVER6)));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", q.k,
                          find_operand_format(q.format)->block, ""));
  NVFP4_TRY(rule_enumerator("operation", q.operation, Enumeration::fused,
                            only(NVFP4_FUSED_SILU_MUL) | only(NVFP4_FUSED_RMS_NORM)));
  NVFP4_TRY(rule_enumerator("type", q.type, Enumeration::type,
                            only(NVFP4_TYPE_F16) | only(NVFP4_TYPE_BF16) | only(NVFP4_TYPE_F32)));
  NVFP4_TRY(check_epsilon(q));
  NVFP4_TRY(check_codes_kind(q));
  NVFP4_TRY(rule_enumerator("tensor_scale_mode", q.tensor_scale_mode, Enumeration::tensor_scale,
                            only(NVFP4_TENSOR_SCALE_VALUE) | only(NVFP4_TENSOR_SCALE_DEVICE) |
                                only(NVFP4_TENSOR_SCALE_ROW_AMAX)));
  NVFP4_TRY(
      rule_enumerator("pdl", q.pdl, Enumeration::pdl, only(NVFP4_PDL_OFF) | only(NVFP4_PDL_ON)));
  NVFP4_TRY(check_second_level(q.format, q.tensor_scale_mode, q.tensor_scale));
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return rule_tensor_scale(q.tensor_scale);
  return NVFP4_SUCCESS;
}

nvfp4_status check_places(const nvfp4_fused_quantize_desc& q) {
  const bool norm = q.operation == NVFP4_FUSED_RMS_NORM;
  const int64_t element = element_bytes(q.type);
  Buffers buffers;
  NVFP4_TRY(rule_at_least("x_ld", q.x_ld, "k", q.k));
  NVFP4_TRY(buffers.add_matrix("x", q.x, q.rows, q.x_ld, q.k, element, Use::read));
  if (!norm || q.y != nullptr) {
    NVFP4_TRY(rule_at_least("y_ld", q.y_ld, "k", q.k));
    NVFP4_TRY(buffers.add_matrix("y", q.y, q.rows, q.y_ld, q.k, element,
                                 norm ? Use::written : Use::read));
  }
  if (norm) {
    NVFP4_TRY(buffers.add_matrix("weight", q.weight, 1, q.k, q.k, element, Use::read));
  } else if (q.weight != nullptr) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "weight = %p must be NULL with NVFP4_FUSED_SILU_MUL",
                q.weight);
  }
  NVFP4_TRY(check_codes_ld(q));
  NVFP4_TRY(add_codes_and_scales(q, &buffers));
  if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_VALUE) {
    const bool rows = has_row_scales(q.tensor_scale_mode);
    NVFP4_TRY(buffers.add_aligned("tensor_scale_device", q.tensor_scale_device,
                                  (rows ? q.rows : 1) * int64_t{sizeof(float)}, sizeof(float),
                                  rows ? Use::written : Use::read));
  }
  return buffers.apart();
}

}  // namespace

nvfp4_status check_fused(const nvfp4_fused_quantize_desc* desc, bool* empty) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(rule_struct_size(desc, desc->struct_size, sizeof *desc, sizeof *desc,
                             "nvfp4_fused_quantize_desc"));
  NVFP4_TRY(check_numbers(*desc));
  *empty = desc->rows == 0 || desc->k == 0;
  return *empty ? NVFP4_SUCCESS : check_places(*desc);
}

}  // namespace nvfp4
