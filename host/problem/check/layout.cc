// SPDX-License-Identifier: MIT
// Leading dimensions and batch strides of nvfp4_gemm_desc.
#include <cinttypes>

#include "host/base/packing.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

// Tensor maps require multiples of 16 bytes below 2^40.
int64_t operand_multiple(const Operand& x) { return x.quantized() ? 32 : 8; }
int64_t max_stride(const Operand& x) { return (int64_t{1} << (x.quantized() ? 41 : 39)) - 1; }

nvfp4_status check_operand_ld(const Operand& x) {
  if (x.packed()) return NVFP4_SUCCESS;  // 0, as check_companions() wants it
  NVFP4_TRY(rule_at_least(x.ld_name, x.ld, "k", x.k));
  NVFP4_TRY(rule_range(x.ld_name, x.ld, max_stride(x)));
  return rule_multiple(NVFP4_STATUS_MISALIGNED, x.ld_name, x.ld, operand_multiple(x), "");
}

nvfp4_status check_operand_strides(const Operand& x) {
  if (x.l == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range(x.stride_name, x.stride, max_stride(x)));
  if (x.packed()) {
    return rule_multiple(NVFP4_STATUS_MISALIGNED, x.stride_name, x.stride,
                         find_packing(x.packing)->elements(*find_operand_format(x.format)),
                         ", the elements of a unit");
  }
  NVFP4_TRY(
      rule_multiple(NVFP4_STATUS_MISALIGNED, x.stride_name, x.stride, operand_multiple(x), ""));
  if (!x.quantized()) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range(x.scales_stride_name, x.scales_stride, INT64_MAX));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, x.scales_stride_name, x.scales_stride,
                          kAddressAlignment, ""));
  int64_t bytes;
  if (!scale_bytes_of(x, x.layout, &bytes)) return too_far(x.scales_name);
  if (x.scales_stride == 0) return NVFP4_SUCCESS;
  return rule_at_least(x.scales_stride_name, x.scales_stride, "nvfp4_scale_bytes_for()", bytes);
}

// Batches of D either follow each other, or their lines interleave.
nvfp4_status check_d_stride(const nvfp4_gemm_desc& g) {
  if (g.l == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range("d_batch_stride", g.d_batch_stride, INT64_MAX));
  const Lines d = lines_of_cd(g);
  int64_t matrix, line;
  const bool behind = extent(d.count, g.d_ld, d.length, &matrix) && g.d_batch_stride >= matrix;
  const bool interleaved = g.d_batch_stride >= d.length &&
                           extent(g.l, g.d_batch_stride, d.length, &line) && g.d_ld >= line;
  if (behind || interleaved) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "d_batch_stride = %" PRId64
              " lets batches of D touch; at least (%s-1) * d_ld + %s, or "
              "%s that interleave: %s <= d_batch_stride and d_ld = %" PRId64
              " >= (l-1) * d_batch_stride + %s",
              g.d_batch_stride, d.count_name, d.length_name,
              g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? "rows" : "columns", d.length_name, g.d_ld,
              d.length_name);
}

}  // namespace

Operand operand_a(const nvfp4_gemm_desc& g) {
  return {"a",
          "a_ld",
          "a_batch_stride",
          "a_scales",
          "a_scales_batch_stride_bytes",
          g.m,
          g.k,
          g.l,
          g.a,
          g.a_scales,
          g.a_ld,
          g.a_batch_stride,
          g.a_scales_batch_stride_bytes,
          g.a_scale_layout,
          g.a_type,
          g.operand_format,
          g.a_packing};
}

Operand operand_b(const nvfp4_gemm_desc& g) {
  return {"b",
          "b_ld",
          "b_batch_stride",
          "b_scales",
          "b_scales_batch_stride_bytes",
          g.n,
          g.k,
          g.l,
          g.b,
          g.b_scales,
          g.b_ld,
          g.b_batch_stride,
          g.b_scales_batch_stride_bytes,
          g.b_scale_layout,
          NVFP4_TYPE_NONE,
          g.operand_format,
          g.b_packing};
}

Operand operand_b2(const nvfp4_gemm_desc& g) {
  Operand b2 = operand_b(g);
  b2.name = "b2";
  b2.scales_name = "b2_scales";
  b2.elements = g.b2;
  b2.scales = g.b2_scales;
  return b2;
}

bool scale_bytes_of(const Operand& x, int32_t layout, int64_t* bytes) {
  return scale_bytes_for(x.rows, x.k, layout, x.format, bytes);
}

Lines lines_of_cd(const nvfp4_gemm_desc& g) {
  if (g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR) return {"m", "n", g.m, g.n};
  return {"n", "m", g.n, g.m};
}

nvfp4_status check_leading_dimensions(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (g.k > 0) {
    NVFP4_TRY(check_operand_ld(operand_a(g)));
    NVFP4_TRY(check_operand_ld(operand_b(g)));
  }
  const Lines cd = lines_of_cd(g);
  if (has_c(g, sizes_alone)) {
    NVFP4_TRY(rule_at_least("c_ld", g.c_ld, cd.length_name, cd.length));
  }
  return rule_at_least("d_ld", g.d_ld, cd.length_name, cd.length);
}

nvfp4_status check_input_strides(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (g.k > 0) {
    NVFP4_TRY(check_operand_strides(operand_a(g)));
    NVFP4_TRY(check_operand_strides(operand_b(g)));
  }
  if (g.l > 1 && has_c(g, sizes_alone)) {
    return rule_range("c_batch_stride", g.c_batch_stride, INT64_MAX);
  }
  return NVFP4_SUCCESS;
}

nvfp4_status check_strides(const nvfp4_gemm_desc& g, bool sizes_alone) {
  NVFP4_TRY(check_input_strides(g, sizes_alone));
  return check_d_stride(g);
}

}  // namespace nvfp4
