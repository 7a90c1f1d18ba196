// SPDX-License-Identifier: MIT
#include "tools/nvfp4/described.h"

#include <algorithm>

#include "tools/harness/plan_info.h"
#include "tools/nvfp4/inputs.h"

namespace nvfp4_tool {

namespace {

// Batches of scales begin at multiples of 16 bytes.
int64_t scales_stride(int64_t rows, int64_t k, int32_t layout, int32_t format) {
  return (int64_t(nvfp4_scale_bytes_for(rows, k, layout, format)) + 15) / 16 * 16;
}

}  // namespace

nvfp4_gemm_desc describe(const RunOptions& options) {
  const support::Shape s = options.shape();
  const support::Gaps gaps = gaps_of(options);
  support::Fields f = fields_of(options);
  f.lay_out(s);
  nvfp4_gemm_desc g = numbers_of(f);
  const int64_t row = support::close_ld(s.k);
  g.a_ld = row + gaps.a_ld, g.b_ld = row + gaps.b_ld;
  g.a_batch_stride = s.m * g.a_ld + gaps.a_batch;
  g.b_batch_stride = s.n * g.b_ld + gaps.b_batch;
  g.a_scales_batch_stride_bytes = scales_stride(s.m, s.k, g.a_scale_layout, g.operand_format);
  g.b_scales_batch_stride_bytes = scales_stride(s.n, s.k, g.b_scale_layout, g.operand_format);
  if (support::scale_block_of_d(f.d_type) != 0) {
    const int32_t format = support::format_of_d(f.d_type);
    g.d_scales_batch_stride_bytes = scales_stride(g.m, g.n, f.d_scale_layout, format);
  }
  uint64_t array = 0;
  set_addresses(f, g, [&] { return reinterpret_cast<void*>(++array << 58); });
  return g;
}

RunOptions with_variant(RunOptions options, int32_t capability) {
  if (!options.allow_unproven || !options.variant.empty()) return options;
  const nvfp4_gemm_desc g = describe(options);
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  if (nvfp4_gemm_describe(&g, capability, 1, &info) == NVFP4_SUCCESS) return options;
  const auto names = support::variant_names(capability);
  constexpr int32_t kB200 = 100;
  if (nvfp4_gemm_describe(&g, kB200, 1, &info) != NVFP4_SUCCESS || info.variant == nullptr ||
      std::find(names.begin(), names.end(), info.variant) == names.end()) {
    return options;
  }
  options.variant = info.variant;
  return options;
}

}  // namespace nvfp4_tool
