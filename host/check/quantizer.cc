// SPDX-License-Identifier: MIT
// The rules of nvfp4_quantize_desc, in the header's order, and those of nvfp4_scale_convert.
#include <cinttypes>

#include "host/check/check.h"
#include "host/enumeration.h"
#include "host/formats.h"
#include "host/quantizer.h"
#include "host/rule.h"

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
  for (int i = 0; i < 3; ++i) {
    if (q.reserved[i] != 0) {
      return fail(NVFP4_STATUS_INVALID_VALUE, "reserved[%d] = %" PRId32 " must be 0", i,
                  q.reserved[i]);
    }
  }
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return rule_tensor_scale(q.tensor_scale);
  return NVFP4_SUCCESS;
}

struct Buffer {
  const char* name;
  AddressRange range;
};

nvfp4_status buffer(const char* name, const void* address, int64_t bytes, uint64_t alignment,
                    Buffer* out) {
  out->name = name;
  NVFP4_TRY(rule_not_null(name, address));
  NVFP4_TRY(rule_aligned(name, address, alignment));
  return rule_address_range(name, address, bytes, &out->range);
}

nvfp4_status matrix_buffers(const nvfp4_quantize_desc& q, Buffer (&buffers)[5], size_t* count) {
  const int64_t element = q.x_type == NVFP4_TYPE_F32 ? 4 : 2;
  NVFP4_TRY(rule_at_least("x_ld", q.x_ld, "k", q.k));
  NVFP4_TRY(rule_at_least("codes_ld", q.codes_ld, "k", q.k));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "codes_ld", q.codes_ld, 2, ""));
  int64_t elements, bytes, codes, scales;
  if (!extent(q.rows, q.x_ld, q.k, &elements) || !multiply(elements, element, &bytes)) {
    return too_far("x");
  }
  if (!extent(q.rows, q.codes_ld, q.k, &codes)) return too_far("codes");
  if (!scale_bytes(q.rows, q.k, q.scale_layout, &scales)) return too_far("scales");
  NVFP4_TRY(buffer("x", q.x, bytes, static_cast<uint64_t>(element), &buffers[0]));
  NVFP4_TRY(buffer("codes", q.codes, codes / 2, 1, &buffers[1]));
  NVFP4_TRY(buffer("scales", q.scales, scales, 1, &buffers[2]));
  *count = 3;
  return NVFP4_SUCCESS;
}

nvfp4_status check_places(const nvfp4_quantize_desc& q, uint64_t workspace_bytes) {
  Buffer buffers[5];
  size_t count;
  NVFP4_TRY(matrix_buffers(q, buffers, &count));
  if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_VALUE) {
    NVFP4_TRY(buffer("tensor_scale_device", q.tensor_scale_device, sizeof(float), sizeof(float),
                     &buffers[count++]));
  }
  if (workspace_bytes > 0) {
    if (q.workspace != nullptr && q.workspace_bytes < workspace_bytes) {
      return fail(NVFP4_STATUS_INVALID_VALUE,
                  "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                  " that nvfp4_quantize_workspace_bytes() says",
                  q.workspace_bytes, workspace_bytes);
    }
    NVFP4_TRY(buffer("workspace", q.workspace, static_cast<int64_t>(workspace_bytes), sizeof(float),
                     &buffers[count++]));
  }
  for (size_t i = 1; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      NVFP4_TRY(rule_apart(buffers[i].name, buffers[i].range, buffers[j].name, buffers[j].range));
    }
  }
  return NVFP4_SUCCESS;
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
