// SPDX-License-Identifier: MIT
// What the general epilogue of 10.x does for a gated product: a lane has the same rows of a column
// of both products.
#pragma once

#include <cstdint>

#include "kernel/common/gated.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/lane_rows.cuh"
#include "kernel/sm100/needs.cuh"
#include "kernel/sm100/silu.cuh"

namespace nvfp4 {

// The second factor and bias of a lane's column in a gated product.
__device__ inline LaneColumn second_column(const Sm100Params& p, const GateAlphas& alphas,
                                           uint32_t n) {
  const EpilogueParams& e = p.epilogue;
  const GateParams& gate = gated_params(p).gate;
  LaneColumn column;
  column.row_scales = e.a_scale_per_row != 0;
  ptx::griddepcontrol_wait();
  if (n >= p.n) return column;
  const GatedColumns its(p, alphas.of_b2, gate.alpha2_device, gate.b2_tensor_scale, n);
  column.factors = ColumnScale(its.scale_of_rows, its.scale_of_columns);
  if (!column.row_scales) column.scale = __fmul_rn(its.scale_of_rows, its.scale_of_columns);
  if (e.bias_type != kTypeNone && e.bias_per_row == 0) {
    column.bias = load_element(gate.bias2, e.bias_type, alphas.bias_first + n, true);
  }
  return column;
}

// Replaces x by act(x) * (y + beta), as multiply_gated of kernel/common/gated.cuh does.
__device__ inline void multiply_lanes(Needs needs, uint32_t activation, const GateParams& gate,
                                      LaneRows& x, LaneRows& y) {
  if (needs.any_of(kNeedsLimit)) {
#pragma unroll
    for (uint32_t i = 0; i < kHalfRows; ++i) {
      x[i] = x[i] > gate.limit ? gate.limit : x[i];
      y[i] = y[i] > gate.limit ? gate.limit : y[i];
      y[i] = y[i] < -gate.limit ? -gate.limit : y[i];
    }
  }
  if (needs.any_of(kNeedsActivation)) {
    activate_lane(needs.any_of(kNeedsSilu), activation, x, GateSilu{gate.silu_alpha});
  }
  if (needs.any_of(kNeedsGateBeta)) {
    const ptx::F32x2 beta = ptx::both(gate.beta);
    each_two(y, [&](ptx::F32x2 two, uint32_t) { return ptx::add(two, beta); });
  }
  each_two(x, [&](ptx::F32x2 two, uint32_t i) { return ptx::mul(two, ptx::pack(y[i], y[i + 1])); });
}

}  // namespace nvfp4
