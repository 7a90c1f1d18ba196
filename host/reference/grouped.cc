// SPDX-License-Identifier: MIT
// Computes each group as the single product of its rows.
#include "host/reference/grouped.h"

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/reference/reference.h"

namespace nvfp4 {

namespace {

const void* forward(const void* from, int64_t bytes) {
  return from == nullptr ? nullptr : static_cast<const uint8_t*>(from) + bytes;
}

// From the weights of a group to those of the next.
int64_t weight_bytes(const nvfp4_gemm_desc& g) {
  const Packing* const packing = find_packing(g.b_packing);
  return packing == nullptr ? g.b_batch_stride / 2
                            : packing->stride_bytes(g.b_batch_stride, g.operand_format);
}

int64_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// Byte offset of a row of C or D. A D with scales has two elements in a byte.
int64_t bytes_of_rows(const nvfp4_gemm_desc& g, int64_t row, int64_t ld, int32_t type) {
  const int64_t elements = row * (g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? ld : 1);
  return format_of_d(type) != nullptr ? elements / 2 : elements * bytes_of(type);
}

// A group's rows, and the first of its rows of scales in 128x4 tiles.
struct Rows {
  int64_t begin, end, tiled;

  int64_t of_scales(int32_t layout) const {
    return layout == NVFP4_SCALE_LAYOUT_128X4 ? tiled : begin;
  }
};

int64_t within(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

// The product of one group: its rows of every operand with rows, and its weights.
nvfp4_gemm_desc product_of(const nvfp4_grouped_desc& grouped, const nvfp4_gemm_desc& all,
                           int64_t group, const Rows& rows) {
  nvfp4_gemm_desc g = all;
  const int64_t begin = rows.begin;
  g.l = 1;
  g.m = rows.end - begin;
  const int64_t elements = begin * all.a_ld;
  g.a = forward(all.a, all.a_type == NVFP4_TYPE_NONE ? elements / 2 : elements * 2);
  int64_t scales = 0;
  if (all.a_type == NVFP4_TYPE_NONE) {
    scale_bytes_for(rows.of_scales(all.a_scale_layout), all.k, all.a_scale_layout,
                    all.operand_format, &scales);
  }
  g.a_scales = forward(all.a_scales, scales);
  g.b = forward(all.b, all.l > 1 ? group * weight_bytes(all) : 0);
  g.b_scales = forward(all.b_scales, all.l > 1 ? group * all.b_scales_batch_stride_bytes : 0);
  if (all.b2 != nullptr) {
    g.b2 = forward(all.b2, all.l > 1 ? group * weight_bytes(all) : 0);
    g.b2_scales = forward(all.b2_scales, all.l > 1 ? group * all.b_scales_batch_stride_bytes : 0);
  }
  g.c = forward(all.c, bytes_of_rows(all, begin, all.c_ld, all.c_type));
  g.d = static_cast<uint8_t*>(all.d) + bytes_of_rows(all, begin, all.d_ld, all.d_type);
  const OperandFormat* const format = format_of_d(all.d_type);
  if (format != nullptr) {
    scale_bytes_for(rows.of_scales(all.d_scale_layout), all.n, all.d_scale_layout, format->format,
                    &scales);
    g.d_scales = static_cast<uint8_t*>(all.d_scales) + scales;
  }
  if (all.d_row_amax != nullptr) g.d_row_amax = all.d_row_amax + begin;
  if (all.a_tensor_scale_rows != 0) g.a_tensor_scale = all.a_tensor_scale + begin;
  const bool of_rows = all.bias_axis == NVFP4_BIAS_AXIS_ROW;
  const int64_t first = of_rows ? begin : group * grouped.bias_group_stride;
  g.bias = forward(all.bias, first * bytes_of(all.bias_type));
  g.bias2 = forward(all.bias2, first * bytes_of(all.bias_type));
  if (grouped.group_alpha != nullptr) g.alpha = grouped.group_alpha[group];
  if (grouped.group_alpha2 != nullptr) g.alpha2 = grouped.group_alpha2[group];
  if (grouped.group_d_tensor_scale != nullptr) {
    g.d_tensor_scale = grouped.group_d_tensor_scale + group;
  }
  return g;
}

// Ends that decrease, or that are not rows of A, are clamped.
Rows rows_of(const nvfp4_grouped_desc& x, const nvfp4_gemm_desc& g, int64_t group, int64_t before) {
  if (x.rows_kind == NVFP4_ROWS_ENDS) return {before, within(x.rows[group], before, g.m), 0};
  const int64_t begin = group * x.capacity;
  return {begin, begin + within(x.rows[group], 0, x.capacity), 0};
}

int64_t round_up_to_tile(int64_t rows) { return ceil_div(rows, kLayoutTileRows) * kLayoutTileRows; }

}  // namespace

void reference_grouped(const nvfp4_grouped_desc& grouped, const nvfp4_gemm_desc& gemm) {
  int64_t end = 0, tiled = 0;  // ends of the previous groups
  for (int64_t group = 0; group < gemm.l; ++group) {
    Rows rows = rows_of(grouped, gemm, group, end);
    end = rows.end;
    rows.tiled = grouped.scale_rows != nullptr ? grouped.scale_rows[group] : tiled;
    tiled += round_up_to_tile(rows.end - rows.begin);
    if (rows.end > rows.begin) reference_gemm(product_of(grouped, gemm, group, rows));
  }
}

}  // namespace nvfp4
