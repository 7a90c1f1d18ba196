// SPDX-License-Identifier: MIT
#include "host/family/params.h"

#include <iterator>

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/driver/tensor_map.h"
#include "host/plan/apart.h"
#include "host/problem/fields.h"
#include "kernel/common/operand_format.h"

namespace nvfp4 {

namespace {

constexpr bool same(OperandFormatNumber kernel, int32_t header) {
  return static_cast<int32_t>(kernel) == header;
}
static_assert(same(kFormatNvfp4, NVFP4_OPERAND_FORMAT_NVFP4) &&
              same(kFormatMxfp4, NVFP4_OPERAND_FORMAT_MXFP4) &&
              same(kFormatE2m1Ue8m0, NVFP4_OPERAND_FORMAT_E2M1_UE8M0));
static_assert(std::size(kOperandFormats) == kFormatE2m1Ue8m0 + 1, "a format has no number above");

Scales scales_of(const nvfp4_gemm_desc& g, const Operand& x, uint64_t tiled_bytes, uint64_t at) {
  const int64_t stride = scales_stride(g, x.scales_stride);
  if (tiled_bytes == 0) {
    const bool linear = x.quantized() && !x.packed() && x.layout == NVFP4_SCALE_LAYOUT_LINEAR;
    return {static_cast<const uint8_t*>(x.scales), stride, linear};
  }
  int64_t matrix = 0;
  scale_bytes_of(x, NVFP4_SCALE_LAYOUT_128X4, &matrix);  // cannot fail: the plan counted it
  return {static_cast<const uint8_t*>(g.workspace) + at, stride == 0 ? 0 : matrix, false};
}

// Number of weights that a CTA loads at once.
uint32_t rows_of_box(const Plan& plan) { return plan.entry().columns / plan.variant->tile_ctas; }

// Bytes of a row of codes in a box: those of a k-block.
uint32_t span_of_codes(const Plan& plan) { return plan.variant->tile_k / 2; }

// Makes the map of b, or that of b2.
nvfp4_status encode_packed_weights(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                                   const Operand& weights, TensorMap* map) {
  const Packing& packing = *find_packing(g.b_packing);
  const OperandFormat& format = *find_operand_format(g.operand_format);
  const PackedUnits packed{weights.elements,
                           packing.unit_bytes(format),
                           ceil_div(g.k, packing.k(format)),
                           ceil_div(g.n, packing.rows),
                           g.l,
                           packed_batch_bytes(g)};
  return encode_packed_map(driver, weights.name, packed,
                           plan.variant->tile_k / static_cast<uint32_t>(packing.k(format)),
                           rows_of_box(plan) / static_cast<uint32_t>(packing.rows), map);
}

}  // namespace

Scales token_scales(const nvfp4_gemm_desc& g, const Plan& plan) {
  return scales_of(g, operand_a(g), plan.a_scales_bytes, 0);
}
Scales weight_scales(const nvfp4_gemm_desc& g, const Plan& plan) {
  return scales_of(g, operand_b(g), plan.b_scales_bytes, plan.a_scales_bytes);
}

const uint8_t* weight_scales2(const nvfp4_gemm_desc& g) {
  return static_cast<const uint8_t*>(g.b2_scales);
}

nvfp4_status encode_weights(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                            TensorMap* map) {
  if (plan.packed) return encode_packed_weights(driver, g, plan, operand_b(g), map);
  return encode_tensor_map(driver, "b", MapElement::e2m1, g.b, g.n, g.k, g.l, g.b_ld,
                           g.b_batch_stride, span_of_codes(plan), rows_of_box(plan), map);
}
nvfp4_status encode_weights2(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                             TensorMap* map) {
  if (plan.packed) return encode_packed_weights(driver, g, plan, operand_b2(g), map);
  return encode_tensor_map(driver, "b2", MapElement::e2m1, g.b2, g.n, g.k, g.l, g.b_ld,
                           g.b_batch_stride, span_of_codes(plan), rows_of_box(plan), map);
}

nvfp4_status encode_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                           uint32_t rows, TensorMap* map) {
  const MapElement element = g.a_type == NVFP4_TYPE_NONE ? MapElement::e2m1 : MapElement::half;
  const uint32_t span = g.a_type == NVFP4_TYPE_NONE ? span_of_codes(plan) : kSpanOfHalves;
  return encode_tensor_map(driver, "a", element, g.a, g.m, g.k, g.l, g.a_ld, g.a_batch_stride, span,
                           rows, map);
}

}  // namespace nvfp4
