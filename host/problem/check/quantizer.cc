// SPDX-License-Identifier: MIT
// The rules of nvfp4_quantize_desc, in the header's order, and those of nvfp4_scale_convert.
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

bool reads_codes(QuantizerCall call) {
  return call == QuantizerCall::dequantize || call == QuantizerCall::dequantize_host;
}

bool on_host(QuantizerCall call) {
  return call == QuantizerCall::quantize_host || call == QuantizerCall::dequantize_host;
}

nvfp4_status check_tensor_scale_mode(int32_t mode, bool codes_are_read) {
  const EnumeratorSet read = only(NVFP4_TENSOR_SCALE_VALUE) | only(NVFP4_TENSOR_SCALE_DEVICE) |
                             only(NVFP4_TENSOR_SCALE_ROWS) | only(NVFP4_TENSOR_SCALE_FROM_ROW_AMAX);
  const EnumeratorSet made = only(NVFP4_TENSOR_SCALE_AMAX) | only(NVFP4_TENSOR_SCALE_ROW_AMAX);
  return rule_enumerator("tensor_scale_mode", mode, Enumeration::tensor_scale,
                         codes_are_read ? read : read | made);
}

nvfp4_status check_numbers(const nvfp4_quantize_desc& q, QuantizerCall call) {
  NVFP4_TRY(rule_range("rows", q.rows, kMostRows));
  NVFP4_TRY(rule_range("k", q.k, kMostRows));
  NVFP4_TRY(check_format(q.format, q.scale_rule));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", q.k,
                          find_operand_format(q.format)->block, ""));
  NVFP4_TRY(rule_enumerator("x_type", q.x_type, Enumeration::type,
                            only(NVFP4_TYPE_F16) | only(NVFP4_TYPE_BF16) | only(NVFP4_TYPE_F32)));
  NVFP4_TRY(check_codes_kind(q));
  NVFP4_TRY(check_tensor_scale_mode(q.tensor_scale_mode, reads_codes(call)));
  NVFP4_TRY(
      rule_enumerator("pdl", q.pdl, Enumeration::pdl, only(NVFP4_PDL_OFF) | only(NVFP4_PDL_ON)));
  NVFP4_TRY(check_second_level(q.format, q.tensor_scale_mode, q.tensor_scale));
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return rule_tensor_scale(q.tensor_scale);
  return NVFP4_SUCCESS;
}

nvfp4_status check_leading_dimensions(const nvfp4_quantize_desc& q) {
  NVFP4_TRY(rule_at_least("x_ld", q.x_ld, "k", q.k));
  return check_codes_ld(q);
}

// Each buffer is read in one direction and written in the other, so none may overlap another.
nvfp4_status check_places(const nvfp4_quantize_desc& q, uint64_t workspace_bytes) {
  Buffers buffers;
  NVFP4_TRY(
      buffers.add_matrix("x", q.x, q.rows, q.x_ld, q.k, element_bytes(q.x_type), Use::written));
  NVFP4_TRY(add_codes_and_scales(q, &buffers));
  if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_VALUE) {
    const int64_t count = has_row_scales(q.tensor_scale_mode) ? q.rows : 1;
    NVFP4_TRY(buffers.add_aligned("tensor_scale_device", q.tensor_scale_device,
                                  count * int64_t{sizeof(float)}, sizeof(float), Use::written));
  }
  if (workspace_bytes > 0) {
    if (q.workspace != nullptr && q.workspace_bytes < workspace_bytes) {
      return fail(NVFP4_STATUS_INVALID_VALUE,
                  "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                  " that nvfp4_quantize_workspace_bytes() says",
                  q.workspace_bytes, workspace_bytes);
    }
    NVFP4_TRY(buffers.add_aligned("workspace", q.workspace, static_cast<int64_t>(workspace_bytes),
                                  sizeof(float), Use::written));
  }
  return buffers.apart();
}

}  // namespace

nvfp4_status check_format(int32_t format, int32_t scale_rule) {
  NVFP4_TRY(rule_enumerator("format", format, Enumeration::operand_format,
                            every(Enumeration::operand_format)));
  NVFP4_TRY(rule_enumerator("scale_rule", scale_rule, Enumeration::scale_rule,
                            every(Enumeration::scale_rule)));
  const bool for_ue4m3 = scale_rule == NVFP4_SCALE_RULE_4OVER6;
  const bool has_ue4m3 = find_operand_format(format)->scale == ScaleType::ue4m3;
  if (scale_rule == NVFP4_SCALE_RULE_DEFAULT || for_ue4m3 == has_ue4m3) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "scale_rule = %s is one of %s scales, which format = %s does not have",
              enumerator_name(Enumeration::scale_rule, scale_rule), for_ue4m3 ? "UE4M3" : "UE8M0",
              enumerator_name(Enumeration::operand_format, format));
}

// UE8M0 scales cover the whole range of fp32, so no tensor scale is needed.
nvfp4_status check_second_level(int32_t format, int32_t mode, float tensor_scale) {
  constexpr uint32_t kOne = 0x3F800000;
  const bool one = mode == NVFP4_TENSOR_SCALE_VALUE && f32_bits(tensor_scale) == kOne;
  if (one || find_operand_format(format)->scale == ScaleType::ue4m3) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "tensor_scale must be 1 by value where format = %s, not %g with tensor_scale_mode = "
              "%s",
              enumerator_name(Enumeration::operand_format, format), f64_from_f32(tensor_scale),
              enumerator_name(Enumeration::tensor_scale, mode));
}

nvfp4_status check_quantizer(const nvfp4_quantize_desc* desc, QuantizerCall call, bool* empty) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(
      rule_struct_size(desc, desc->struct_size, sizeof *desc, sizeof *desc, "nvfp4_quantize_desc"));
  NVFP4_TRY(check_numbers(*desc, call));
  *empty = desc->rows == 0 || desc->k == 0;
  if (*empty) return NVFP4_SUCCESS;
  NVFP4_TRY(check_leading_dimensions(*desc));
  if (call == QuantizerCall::workspace) return NVFP4_SUCCESS;
  return check_places(*desc, on_host(call) ? 0 : quantizer_workspace(*desc));
}

}  // namespace nvfp4
