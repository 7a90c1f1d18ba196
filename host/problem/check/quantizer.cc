// SPDX-License-Identifier: MIT
// The rules of nvfp4_quantize_desc, in the header's order, and those of nvfp4_scale_convert.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/problem/buffers.h"
#include "host/problem/check.h"
#include "host/problem/enumeration.h"
#include "host/problem/quantizer.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMostRows = INT32_MAX;

nvfp4_status check_numbers(const nvfp4_quantize_desc& q, QuantizerCall call) {
  NVFP4_TRY(rule_range("rows", q.rows, kMostRows));
  NVFP4_TRY(rule_range("k", q.k, kMostRows));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", q.k, kScaleBlock, ""));
  NVFP4_TRY(rule_enumerator("x_type", q.x_type, Enumeration::type,
                            only(NVFP4_TYPE_F16) | only(NVFP4_TYPE_BF16) | only(NVFP4_TYPE_F32)));
  NVFP4_TRY(rule_scale_layout("scale_layout", q.scale_layout));
  const EnumeratorSet given = only(NVFP4_TENSOR_SCALE_VALUE) | only(NVFP4_TENSOR_SCALE_DEVICE);
  NVFP4_TRY(rule_enumerator(
      "tensor_scale_mode", q.tensor_scale_mode, Enumeration::tensor_scale,
      call == QuantizerCall::dequantize ? given : given | only(NVFP4_TENSOR_SCALE_AMAX)));
  NVFP4_TRY(
      rule_enumerator("pdl", q.pdl, Enumeration::pdl, only(NVFP4_PDL_OFF) | only(NVFP4_PDL_ON)));
  NVFP4_TRY(rule_reserved(q.reserved));
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return rule_tensor_scale(q.tensor_scale);
  return NVFP4_SUCCESS;
}

// Buffers are read and written in one direction or the other: none may meet another.
nvfp4_status check_places(const nvfp4_quantize_desc& q, uint64_t workspace_bytes) {
  constexpr bool kWritten = true;
  NVFP4_TRY(rule_at_least("x_ld", q.x_ld, "k", q.k));
  NVFP4_TRY(rule_at_least("codes_ld", q.codes_ld, "k", q.k));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "codes_ld", q.codes_ld, 2, ""));
  Buffers buffers;
  NVFP4_TRY(buffers.add_matrix("x", q.x, q.rows, q.x_ld, q.k, element_bytes(q.x_type), kWritten));
  NVFP4_TRY(buffers.add_codes(q.codes, q.rows, q.codes_ld, q.k, kWritten));
  NVFP4_TRY(buffers.add_scales(q.scales, q.rows, q.k, q.scale_layout, kWritten));
  if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_VALUE) {
    NVFP4_TRY(buffers.add("tensor_scale_device", q.tensor_scale_device, sizeof(float),
                          sizeof(float), kWritten));
  }
  if (workspace_bytes > 0) {
    if (q.workspace != nullptr && q.workspace_bytes < workspace_bytes) {
      return fail(NVFP4_STATUS_INVALID_VALUE,
                  "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                  " that nvfp4_quantize_workspace_bytes() says",
                  q.workspace_bytes, workspace_bytes);
    }
    NVFP4_TRY(buffers.add("workspace", q.workspace, static_cast<int64_t>(workspace_bytes),
                          sizeof(float), kWritten));
  }
  return buffers.apart();
}

}  // namespace

nvfp4_status check_quantizer(const nvfp4_quantize_desc* desc, QuantizerCall call, bool* empty) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(rule_struct_size(desc, desc->struct_size, sizeof *desc, "nvfp4_quantize_desc"));
  NVFP4_TRY(check_numbers(*desc, call));
  *empty = desc->rows == 0 || desc->k == 0;
  if (*empty || call == QuantizerCall::workspace) return NVFP4_SUCCESS;
  return check_places(*desc, quantizer_workspace(*desc));
}

}  // namespace nvfp4
