// SPDX-License-Identifier: MIT
#include "tools/nvfp4/described.h"

#include <algorithm>

#include "tools/harness/plan_info.h"
#include "tools/nvfp4/inputs.h"

namespace nvfp4_tool {

namespace {

void* address(uint64_t i) { return reinterpret_cast<void*>(i << 60); }

// Batches of scales begin at multiples of 16 bytes.
int64_t scales_stride(int64_t rows, int64_t k, int32_t layout, int32_t format) {
  return (int64_t(nvfp4_scale_bytes_for(rows, k, layout, format)) + 15) / 16 * 16;
}

// Inputs may share memory with each other.
void describe_gate(const support::EpilogueFields& f, nvfp4_gemm_desc& g) {
  g.b2 = g.b, g.b2_scales = g.b_scales, g.bias2 = g.bias;
  if (f.b2_tensor_scale) g.b2_tensor_scale = static_cast<const float*>(address(15));
  g.alpha2 = f.alpha2;
  g.gate_limit = f.gate_limit, g.gate_alpha = f.gate_alpha, g.gate_beta = f.gate_beta;
}

void describe_epilogue(const support::EpilogueFields& f, int64_t lines, int64_t length,
                       nvfp4_gemm_desc& g) {
  const float* const scalars = static_cast<const float*>(address(15));
  g.d_type = f.d_type, g.cd_order = f.cd_order, g.activation = f.activation;
  g.alpha = f.alpha, g.beta = f.beta;
  if (support::scale_block_of_d(f.d_type) != 0) {
    g.d_scales = address(10), g.d_scale_layout = f.d_scale_layout, g.d_scale_rule = f.d_scale_rule;
    const int32_t format = support::format_of_d(f.d_type);
    g.d_scales_batch_stride_bytes = scales_stride(g.m, g.n, f.d_scale_layout, format);
    if (f.d_tensor_scale) g.d_tensor_scale = scalars;
  }
  if (f.d_amax) g.d_amax = static_cast<float*>(address(12));
  if (f.d_row_amax) g.d_row_amax = static_cast<float*>(address(14));
  g.c_type = f.c_type, g.c_ld = length + f.c_ld_gap;
  g.c_batch_stride = lines * g.c_ld + f.c_batch_gap;
  if (f.c_type != NVFP4_TYPE_NONE) g.c = address(11);
  g.bias_type = f.bias_type, g.bias_axis = f.bias_axis;
  if (f.bias_type != NVFP4_TYPE_NONE) g.bias = address(13);
  if (f.a_tensor_scale) g.a_tensor_scale = scalars;
  g.a_tensor_scale_rows = f.a_tensor_scale_rows;
  if (f.b_tensor_scale) g.b_tensor_scale = scalars;
  g.b_tensor_scale_columns = f.b_tensor_scale_columns;
  g.scalar_mode = f.scalar_mode;
  if (f.gated) describe_gate(f, g);
  if (f.scalar_mode != NVFP4_SCALARS_DEVICE) return;
  g.alpha_device = scalars;
  if (f.gated) g.alpha2_device = scalars;
  if (f.c_type != NVFP4_TYPE_NONE) g.beta_device = scalars;
}

}  // namespace

nvfp4_gemm_desc describe(const RunOptions& options) {
  const support::Shape& s = options.shape;
  const support::Gaps gaps = gaps_of(options);
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k, g.l = s.l;
  g.a = address(1), g.a_scales = address(3), g.b = address(5), g.b_scales = address(7);
  g.d = address(9);
  const support::EpilogueFields f = fields_of(options);
  const bool by_row = f.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  const int64_t lines = by_row ? s.m : s.n, length = by_row ? s.n : s.m;
  const int64_t row = support::close_ld(s.k);
  g.a_ld = row + gaps.a_ld, g.b_ld = row + gaps.b_ld, g.d_ld = length + gaps.d_ld;
  g.a_batch_stride = s.m * g.a_ld + gaps.a_batch;
  g.b_batch_stride = s.n * g.b_ld + gaps.b_batch;
  g.d_batch_stride = lines * g.d_ld + gaps.d_batch;
  describe_epilogue(f, lines, length, g);
  g.a_scale_layout = options.a_layout, g.b_scale_layout = options.b_layout;
  g.operand_format = options.format;
  g.a_scales_batch_stride_bytes = scales_stride(s.m, s.k, g.a_scale_layout, options.format);
  g.b_scales_batch_stride_bytes = scales_stride(s.n, s.k, g.b_scale_layout, options.format);
  g.pdl = options.pdl;
  g.batch_invariant = options.batch_invariant;
  g.a_type = options.a_type;
  if (g.a_type != NVFP4_TYPE_NONE) g.a_scales = nullptr;
  g.variant = options.variant.empty() ? nullptr : options.variant.c_str();
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
