// SPDX-License-Identifier: MIT
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

// Sizes and strides as `run` lays them out, without memory: the addresses are looked at, not read,
// and lie so far apart that nothing overlaps.
nvfp4_gemm_desc describe(const RunOptions& options) {
  const support::Shape& s = options.shape;
  const support::Gaps gaps = gaps_of(options);
  const auto address = [](uint64_t i) { return reinterpret_cast<void*>(i << 60); };
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k, g.l = s.l;
  g.a = address(1), g.a_scales = address(3), g.b = address(5), g.b_scales = address(7);
  g.d = address(9);
  g.a_ld = s.k + gaps.a_ld, g.b_ld = s.k + gaps.b_ld, g.d_ld = s.n + gaps.d_ld;
  g.a_batch_stride = s.m * g.a_ld + gaps.a_batch;
  g.b_batch_stride = s.n * g.b_ld + gaps.b_batch;
  g.d_batch_stride = s.m * g.d_ld + gaps.d_batch;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.a_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(s.m, s.k, g.a_scale_layout));
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(s.n, s.k, g.b_scale_layout));
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = options.alpha.value_or(1.0f);
  g.pdl = options.pdl;
  g.variant = options.variant.empty() ? nullptr : options.variant.c_str();
  return g;
}

}  // namespace

int explain(const ExplainOptions& options) {
  const nvfp4_gemm_desc g = describe(options.problem);
  char text[4096];
  if (nvfp4_gemm_explain(&g, options.compute_capability, options.sms, text, sizeof text) !=
      NVFP4_SUCCESS) {
    throw UsageError(nvfp4_last_error());
  }
  std::fputs(text, stdout);
  return kPassed;
}

}  // namespace nvfp4_tool
