// SPDX-License-Identifier: MIT
#include "kernel/common/finish.h"
#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "host/run/enqueue.h"
#include "host/run/quantizer.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMostGridRows = 65535;

nvfp4_quantize_desc quantize_desc_of(const nvfp4_gemm_desc& g, const nvfp4_gemm_desc& sums) {
  nvfp4_quantize_desc q{};
  q.struct_size = sizeof q;
  q.rows = g.m;
  q.k = g.n;
  q.x = sums.d;
  q.x_ld = sums.d_ld;
  q.x_type = NVFP4_TYPE_F32;
  q.codes = g.d;
  q.codes_ld = g.d_ld;
  q.scales = g.d_scales;
  q.scale_layout = g.d_scale_layout;
  q.tensor_scale_mode =
      g.d_tensor_scale == nullptr ? NVFP4_TENSOR_SCALE_VALUE : NVFP4_TENSOR_SCALE_DEVICE;
  q.tensor_scale = g.d_tensor_scale == nullptr ? 1.0f : 0.0f;
  q.tensor_scale_device = const_cast<float*>(g.d_tensor_scale);  // read, never written
  q.format = format_of_d(g.d_type)->format;
  q.scale_rule = g.d_scale_rule;
  return q;
}

// silu(x) * y alone, to D in 16 bits of rows of whole fours.
bool is_swiglu(const nvfp4_gemm_desc& g) {
  const bool plain_gate =
      g.gate_limit == 0 && g.gate_beta == 0 && (g.gate_alpha == 0 || g.gate_alpha == 1);
  const bool one_factor = g.a_tensor_scale_rows == 0 && g.b_tensor_scale_columns == 0;
  return is_gated(g) && g.activation == NVFP4_ACTIVATION_SILU && plain_gate && one_factor &&
         g.bias_type == NVFP4_TYPE_NONE && g.d_ld % 4 == 0 &&
         (g.d_type == NVFP4_TYPE_F16 || g.d_type == NVFP4_TYPE_BF16) &&
         ceil_div(g.n, int64_t{kFinishColumns}) <= kMostGridRows;
}

QuantizerEntry entry_of(const nvfp4_gemm_desc& g) {
  if (is_swiglu(g)) return kQuantizer_finish_swiglu;
  if (is_gated(g)) return kQuantizer_finish_gated;
  return has_usual_rows(g) ? kQuantizer_finish_rows : kQuantizer_finish;
}

// Rows of a CTA. Only the kernel for any epilogue needs as many as fill its shared memory.
uint32_t rows_of_cta(const Site& site, const nvfp4_gemm_desc& g) {
  uint32_t rows = kFinishRows;
  if (entry_of(g) == kQuantizer_finish) return rows;
  const int64_t across = ceil_div(g.n, int64_t{kFinishColumns}) * g.l;
  while (rows > kFinishFewRows && ceil_div(g.m, int64_t{rows}) * across < 2 * site.sm_count) {
    rows /= 2;
  }
  return rows;
}

FinishParams finish_params(const nvfp4_gemm_desc& g, const nvfp4_gemm_desc& sums, uint32_t rows) {
  FinishParams p{};
  p.rows = rows;
  p.sums = static_cast<const float*>(sums.d);
  p.sums_ld = sums.d_ld;
  p.sums_batch_stride = sums.d_batch_stride;
  p.d = g.d;
  p.d_batch_stride = g.l > 1 ? g.d_batch_stride : 0;
  p.m = static_cast<uint32_t>(g.m);
  p.n = static_cast<uint32_t>(g.n);
  p.alpha = g.alpha;
  p.epilogue = make_epilogue(g);
  if (!is_gated(g)) return p;
  p.gate = make_gate(g);
  if (comes_first(g.b2, g.b)) {
    p.sums += p.sums_batch_stride;
    p.sums_batch_stride = -p.sums_batch_stride;
  }
  return p;
}

}  // namespace

nvfp4_status ready_finish(const Site& site, const nvfp4_gemm_desc& g, const Plan& plan) {
  if (plan.apart == Apart::quantizer) return ready_quantize_f32(site);
  uint32_t index;
  CUkernel kernel;
  NVFP4_TRY(site_architecture(site, &index));
  return load_quantizer(*site.driver, index, entry_of(g), &kernel);
}

// Where kernels wait for the one before them, so does this one.
nvfp4_status enqueue_finish(const Site& site, const nvfp4_gemm_desc& g, const Plan& plan,
                            CUstream stream) {
  const nvfp4_gemm_desc sums = sums_product(g, plan.apart);
  if (plan.apart == Apart::quantizer) {
    return enqueue_quantize_on(site, quantize_desc_of(g, sums), plan.waits, stream);
  }
  const uint32_t rows = rows_of_cta(site, g);
  const FinishParams params = finish_params(g, sums, rows);
  const auto down = static_cast<uint32_t>(ceil_div(g.m, int64_t{rows}) * g.l);
  const auto across = static_cast<uint32_t>(ceil_div(g.n, int64_t{kFinishColumns}));
  const QuantizerEntry entry = entry_of(g);
  Grid grid{down, across, kFinishThreads, 0, 1, plan.waits};
  if (entry != kQuantizer_finish_swiglu) grid.ctas *= across, grid.rows = 1;
  uint32_t index;
  CUkernel kernel;
  NVFP4_TRY(site_architecture(site, &index));
  NVFP4_TRY(load_quantizer(*site.driver, index, entry, &kernel));
  return launch(site, kernel, grid, &params, stream);
}

}  // namespace nvfp4
