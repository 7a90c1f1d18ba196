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
  if (g.b_packing != NVFP4_PACKING_NONE) {
    g.b_ld = 0, g.b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
    g.b_batch_stride = support::packed_stride(s.n, s.k, g.b_packing, g.operand_format);
  }
  if (support::scale_block_of_d(f.d_type) != 0) {
    const int32_t format = support::format_of_d(f.d_type);
    g.d_scales_batch_stride_bytes = scales_stride(g.m, g.n, f.d_scale_layout, format);
  }
  uint64_t array = 0;
  set_addresses(f, g, [&] { return reinterpret_cast<void*>(++array << 58); });
  // As near each other as on a device, where both can be one launch. What is read may overlap.
  if (g.b2 != nullptr) g.b2 = g.b;
  return g;
}

int64_t group_count(const RunOptions& options) {
  int64_t count = 0;
  for (const auto& each : options.groups) count += each.groups;
  return count;
}

int64_t all_rows(const RunOptions& options) {
  int64_t rows = 0, most = 0;
  for (const auto& each : options.groups) {
    rows += each.rows * each.groups, most = std::max(most, each.rows);
  }
  if (rows == 0) throw UsageError("--groups: no group has a row, so there is nothing to multiply");
  if (options.capacity > 0) rows = options.capacity * group_count(options);
  if (rows > INT32_MAX) {
    throw UsageError("--groups: " + std::to_string(rows) + " rows in all; at most 2147483647");
  }
  if (options.capacity == 0 || most <= options.capacity) return rows;
  throw UsageError("--groups: a group of " + std::to_string(most) +
                   " rows has room for --capacity " + std::to_string(options.capacity));
}

support::Groups groups_of(const RunOptions& options) {
  support::Groups groups;
  int64_t end = 0;
  for (const auto& each : options.groups) {
    for (int64_t i = 0; i < each.groups; ++i) {
      end += each.rows;
      groups.rows.push_back(int32_t(options.capacity > 0 ? each.rows : end));
    }
  }
  groups.capacity = options.capacity;
  groups.b_shared = options.b_shared;
  groups.with_alpha = options.group_alpha, groups.with_bias = options.group_bias;
  groups.scales_turned = options.scale_rows;
  return groups;
}

nvfp4_grouped_desc describe_groups(const RunOptions& options, nvfp4_gemm_desc* gemm) {
  RunOptions one = options;
  one.product.m = all_rows(options), one.product.l = group_count(options);
  *gemm = describe(one);
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = gemm;
  grouped.rows_kind = options.capacity > 0 ? NVFP4_ROWS_COUNTS : NVFP4_ROWS_ENDS;
  grouped.capacity = options.capacity;
  grouped.b_shared = options.b_shared;
  grouped.rows_hint = int32_t(options.rows_hint);
  if (options.b_shared) gemm->b_batch_stride = gemm->b_scales_batch_stride_bytes = 0;
  const bool of_columns = gemm->bias_axis == NVFP4_BIAS_AXIS_COLUMN;
  if (options.group_bias && gemm->bias_type != NVFP4_TYPE_NONE && of_columns) {
    grouped.bias_group_stride = gemm->n + 3;
  }
  uint64_t array = 0x3F;
  const auto next = [&] { return reinterpret_cast<void*>(array-- << 52); };
  grouped.rows = static_cast<const int32_t*>(next());
  const bool of_d = gemm->a_type != NVFP4_TYPE_NONE && support::scale_block_of_d(gemm->d_type) != 0;
  const int32_t layout = of_d ? gemm->d_scale_layout : gemm->a_scale_layout;
  if (options.scale_rows && layout == NVFP4_SCALE_LAYOUT_128X4)
    grouped.scale_rows = static_cast<const int32_t*>(next());
  const bool by_value = options.group_alpha && gemm->scalar_mode == NVFP4_SCALARS_HOST;
  if (by_value) grouped.group_alpha = static_cast<const float*>(next());
  if (by_value && gemm->b2 != nullptr) grouped.group_alpha2 = static_cast<const float*>(next());
  if (options.group_alpha && gemm->d_type == NVFP4_TYPE_NVFP4) {
    grouped.group_d_tensor_scale = static_cast<const float*>(next());
  }
  return grouped;
}

RunOptions with_variant(RunOptions options, int32_t capability) {
  if (!options.allow_unproven || !options.variant.empty() || !options.groups.empty()) {
    return options;
  }
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
