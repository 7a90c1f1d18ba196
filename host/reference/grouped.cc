// SPDX-License-Identifier: MIT
// Computes each group as the single product of its rows.
#include "host/reference/grouped.h"

#include "host/base/operand_format.h"
#include "host/reference/reference.h"

namespace nvfp4 {

namespace {

const void* forward(const void* from, int64_t bytes) {
  return from == nullptr ? nullptr : static_cast<const uint8_t*>(from) + bytes;
}

int64_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// Bytes from row 0 of C or D to that row.
int64_t bytes_of_rows(const nvfp4_gemm_desc& g, int64_t row, int64_t ld, int32_t type) {
  return row * (g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? ld : 1) * bytes_of(type);
}

// The product of one group: rows begin to end of every operand that has rows, and the group's
// weights.
nvfp4_gemm_desc product_of(const nvfp4_gemm_desc& all, int64_t group, int64_t begin, int64_t end) {
  nvfp4_gemm_desc g = all;
  g.l = 1;
  g.m = end - begin;
  const int64_t elements = begin * all.a_ld;
  g.a = forward(all.a, all.a_type == NVFP4_TYPE_NONE ? elements / 2 : elements * 2);
  const int64_t block = find_operand_format(all.operand_format)->block;
  g.a_scales = forward(all.a_scales, begin * (all.k / block));  // linear
  g.b = forward(all.b, all.l > 1 ? group * all.b_batch_stride / 2 : 0);
  g.b_scales = forward(all.b_scales, all.l > 1 ? group * all.b_scales_batch_stride_bytes : 0);
  g.c = forward(all.c, bytes_of_rows(all, begin, all.c_ld, all.c_type));
  g.d = static_cast<uint8_t*>(all.d) + bytes_of_rows(all, begin, all.d_ld, all.d_type);
  if (all.bias_axis == NVFP4_BIAS_AXIS_ROW) {
    g.bias = forward(all.bias, begin * bytes_of(all.bias_type));
  }
  return g;
}

}  // namespace

void reference_grouped(const nvfp4_gemm_desc& desc, const int32_t* row_ends) {
  int64_t begin = 0;
  for (int64_t group = 0; group < desc.l; ++group) {
    int64_t end = row_ends[group] < begin ? begin : row_ends[group];
    if (end > desc.m) end = desc.m;
    if (end > begin) reference_gemm(product_of(desc, group, begin, end));
    begin = end;
  }
}

}  // namespace nvfp4
