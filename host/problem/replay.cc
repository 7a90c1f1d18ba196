// SPDX-License-Identifier: MIT
// The command line that reproduces a problem: everything that differs from the defaults of `nvfp4
// run`.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/base/growing_text.h"
#include "host/base/size.h"
#include "host/problem/enumeration.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "host/problem/replay.h"

namespace nvfp4 {

namespace {

Word type_word(int32_t type) { return enumerator_word(Enumeration::type, type); }

void add_scales_of_d(const nvfp4_gemm_desc& g, Text* line) {
  if (g.d_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR) line->add(" --d-scales linear");
  if (g.d_scale_rule == NVFP4_SCALE_RULE_FLOOR) line->add(" --d-scale-rule floor");
  if (g.d_tensor_scale != nullptr) line->add(" --d-tensor-scale");
}

// `nvfp4 run` begins the rows of A and B at multiples of 32 elements by default.
void add_strides(const nvfp4_gemm_desc& g, Text* line) {
  const int64_t neighbours = lines_of_cd(g).length, close = ceil_div(g.k, 32) * 32;
  const bool multiplies = g.k > 0;  // else A and B are not looked at
  if (multiplies && g.a_ld != close) line->add(" --a-ld %" PRId64, g.a_ld);
  if (multiplies && g.b_ld != close) line->add(" --b-ld %" PRId64, g.b_ld);
  if (may_read_c(g) && g.c_ld != neighbours) line->add(" --c-ld %" PRId64, g.c_ld);
  if (g.d_ld != neighbours) line->add(" --d-ld %" PRId64, g.d_ld);
  if (g.l <= 1) return;
  if (multiplies) {
    line->add(" --a-batch-stride %" PRId64 " --b-batch-stride %" PRId64, g.a_batch_stride,
              g.b_batch_stride);
  }
  if (may_read_c(g)) line->add(" --c-batch-stride %" PRId64, g.c_batch_stride);
  line->add(" --d-batch-stride %" PRId64, g.d_batch_stride);
}

void add_layouts(const nvfp4_gemm_desc& g, Text* line) {
  if (g.k == 0) return;
  const bool a = g.a_type == NVFP4_TYPE_NONE && g.a_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR;
  if (a) line->add(" --a-scales linear");
  if (g.b_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR) line->add(" --b-scales linear");
}

// The library must not read scalars on the device, so the command line uses its default values.
void add_epilogue(const nvfp4_gemm_desc& g, Text* line) {
  const bool by_value = g.scalar_mode == NVFP4_SCALARS_HOST;
  if (by_value && g.alpha != 1.0f) line->add(" --alpha %.9g", f64_from_f32(g.alpha));
  if (!by_value) line->add(" --scalars device");
  if (g.d_type != NVFP4_TYPE_F16) line->add(" --d-type %s", type_word(g.d_type).text);
  add_scales_of_d(g, line);
  if (g.d_amax != nullptr) line->add(" --d-amax");
  if (g.d_row_amax != nullptr) line->add(" --d-row-amax");
  if (g.cd_order == NVFP4_CD_ORDER_COLUMN_MAJOR) line->add(" --cd-order column");
  if (may_read_c(g)) {
    line->add(" --c-type %s", type_word(g.c_type).text);
    if (by_value) line->add(" --beta %.9g", f64_from_f32(g.beta));
  }
  if (g.bias_type != NVFP4_TYPE_NONE) {
    line->add(" --bias-type %s", type_word(g.bias_type).text);
    if (g.bias_axis == NVFP4_BIAS_AXIS_ROW) line->add(" --bias-axis row");
  }
  if (g.a_tensor_scale_rows != 0) {
    line->add(" --a-tensor-scale-rows");
  } else if (g.a_tensor_scale != nullptr) {
    line->add(" --a-tensor-scale");
  }
  if (g.b_tensor_scale != nullptr || g.b_tensor_scale_columns != 0) {
    line->add(" --b-tensor-scale %" PRId64, g.b_tensor_scale_columns);
  }
  if (g.activation != NVFP4_ACTIVATION_NONE) {
    line->add(" --activation %s", enumerator_word(Enumeration::activation, g.activation).text);
  }
  if (!is_gated(g)) return;
  line->add(" --gated");
  if (by_value && g.alpha2 != 1.0f) line->add(" --alpha2 %.9g", f64_from_f32(g.alpha2));
  if (g.b2_tensor_scale != nullptr) line->add(" --b2-tensor-scale");
  if (g.gate_limit != 0) line->add(" --gate-limit %.9g", f64_from_f32(g.gate_limit));
  if (g.gate_alpha != 0) line->add(" --gate-alpha %.9g", f64_from_f32(g.gate_alpha));
  if (g.gate_beta != 0) line->add(" --gate-beta %.9g", f64_from_f32(g.gate_beta));
}

}  // namespace

void write_replay(const nvfp4_gemm_desc& g, char* text, size_t bytes) {
  Text line(text, bytes);
  line.add("nvfp4 run --m %" PRId64 " --n %" PRId64 " --k %" PRId64, g.m, g.n, g.k);
  if (g.l != 1) line.add(" --l %" PRId64, g.l);
  if (g.a_type != NVFP4_TYPE_NONE) line.add(" --a-type %s", type_word(g.a_type).text);
  if (g.operand_format != NVFP4_OPERAND_FORMAT_NVFP4) {
    line.add(" --format %s", enumerator_word(Enumeration::operand_format, g.operand_format).text);
  }
  add_layouts(g, &line);
  add_epilogue(g, &line);
  add_strides(g, &line);
  if (g.batch_invariant != 0) line.add(" --batch-invariant");
  if (g.pdl != NVFP4_PDL_OFF) line.add(" --pdl %" PRId32, g.pdl);
  if (g.variant != nullptr) line.add(" --variant %s", g.variant);
}

}  // namespace nvfp4
