// SPDX-License-Identifier: MIT
#include "host/problem/epilogue.h"

#include <algorithm>

#include "host/base/formats.h"
#include "host/base/operand_format.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

constexpr bool same(uint32_t kernels, int32_t headers) { return kernels == uint32_t(headers); }
static_assert(same(kTypeNone, NVFP4_TYPE_NONE) && same(kTypeF16, NVFP4_TYPE_F16));
static_assert(same(kTypeBf16, NVFP4_TYPE_BF16) && same(kTypeF32, NVFP4_TYPE_F32));
static_assert(same(kTypeNvfp4, NVFP4_TYPE_NVFP4) && same(kTypeMxfp4, NVFP4_TYPE_MXFP4));
static_assert(same(kTypeE2m1Ue8m0, NVFP4_TYPE_E2M1_UE8M0));
static_assert(same(kActivationNone, NVFP4_ACTIVATION_NONE));
static_assert(same(kActivationRelu, NVFP4_ACTIVATION_RELU));
static_assert(same(kActivationGeluTanh, NVFP4_ACTIVATION_GELU_TANH));
static_assert(same(kActivationSilu, NVFP4_ACTIVATION_SILU));
static_assert(same(kActivationGeluErf, NVFP4_ACTIVATION_GELU_ERF));
static_assert(same(kActivationReluSquared, NVFP4_ACTIVATION_RELU_SQUARED));

constexpr EnumeratorSet up_to(uint32_t last) { return (EnumeratorSet{2} << last) - 1; }
static_assert(every(Enumeration::type) == up_to(kTypeE2m1Ue8m0), "a type has no number above");
static_assert(every(Enumeration::activation) == up_to(kActivationReluSquared),
              "an activation has no number above");

// Distance in elements to the next row and to the next column.
void set_steps(int32_t order, int64_t ld, int64_t* row, int64_t* column) {
  const bool by_row = order == NVFP4_CD_ORDER_ROW_MAJOR;
  *row = by_row ? ld : 1;
  *column = by_row ? 1 : ld;
}

void set_scales_of_d(const nvfp4_gemm_desc& g, EpilogueParams* p) {
  const OperandFormat* const format = format_of_d(g.d_type);
  if (format == nullptr) return;
  p->d_scales = static_cast<uint8_t*>(g.d_scales);
  p->d_tensor_scale = g.d_tensor_scale;
  p->d_scales_batch_bytes = g.l > 1 ? g.d_scales_batch_stride_bytes : 0;
  p->d_scales_per_row = static_cast<uint32_t>(g.n / format->block);
  p->d_scales_are_tiles = g.d_scale_layout == NVFP4_SCALE_LAYOUT_128X4;
  p->d_scale_floors = g.d_scale_rule == NVFP4_SCALE_RULE_FLOOR;
}

bool has_amax(const nvfp4_gemm_desc& g) { return g.d_amax != nullptr || g.d_row_amax != nullptr; }

// Whether the 16 codes of each block begin at a multiple of 8 bytes, if D does.
bool has_aligned_blocks(const nvfp4_gemm_desc& g) {
  return g.d_ld % 16 == 0 && (g.l == 1 || g.d_batch_stride % 16 == 0);
}

uint32_t kind_of(const nvfp4_gemm_desc& g, const EpilogueParams& p) {
  if (g.cd_order != NVFP4_CD_ORDER_ROW_MAJOR || p.c_type != kTypeNone || has_amax(g) ||
      (p.bias_type != kTypeNone && p.bias_per_row != 0)) {
    return kEpilogueGeneral;
  }
  // A kernel that holds both sums of a gated product in registers applies the activation there.
  if (is_gated(g)) {
    if (p.d_scales_per_row != 0) return has_aligned_blocks(g) ? kEpilogueScaled : kEpilogueGeneral;
    return g.d_type == NVFP4_TYPE_F32 ? kEpilogueGeneral : kEpilogueColumns;
  }
  if (g.activation != NVFP4_ACTIVATION_NONE) return kEpilogueGeneral;
  if (p.d_scales_per_row != 0) return has_aligned_blocks(g) ? kEpilogueScaled : kEpilogueGeneral;
  if (g.d_type == NVFP4_TYPE_F32) return kEpilogueF32;
  if (g.scalar_mode != NVFP4_SCALARS_HOST || p.a_tensor_scale != nullptr ||
      p.b_tensor_scale != nullptr || p.bias_type != kTypeNone) {
    return kEpilogueColumns;
  }
  return g.d_type == NVFP4_TYPE_F16 ? kEpiloguePlain : kEpilogueBf16;
}

}  // namespace

bool may_read_c(const nvfp4_gemm_desc& g) {
  return g.c_type != NVFP4_TYPE_NONE && !beta_is_zero(g);
}

bool is_of_fields(const EpilogueParams& e) {
  return e.kind == kEpilogueGeneral && e.d_column == 1 && e.d_scales_per_row == 0 &&
         (e.bias_type == kTypeNone || e.bias_per_row == 0);
}

GateParams make_gate(const nvfp4_gemm_desc& g) {
  const auto given = [](float x, float otherwise) { return f32_bits(x) << 1 == 0 ? otherwise : x; };
  GateParams p{};
  p.alpha2_device = g.alpha2_device;
  p.b2_tensor_scale = g.b2_tensor_scale;
  p.bias2 = g.bias2;
  p.alpha2 = g.alpha2;
  p.limit = given(g.gate_limit, f32_from_bits(kF32.overflow_code));
  p.silu_alpha = given(g.gate_alpha, 1.0f);
  p.beta = g.gate_beta;
  return p;
}

EpilogueParams make_epilogue(const nvfp4_gemm_desc& g) {
  EpilogueParams p{};
  p.alpha_device = g.alpha_device;
  p.beta_device = g.beta_device;
  p.a_tensor_scale = g.a_tensor_scale;
  p.b_tensor_scale = g.b_tensor_scale;
  p.c = g.c;
  p.bias = g.bias;
  p.c_batch_stride = g.l > 1 ? g.c_batch_stride : 0;  // otherwise it was not checked
  set_steps(g.cd_order, g.c_ld, &p.c_row, &p.c_column);
  set_steps(g.cd_order, g.d_ld, &p.d_row, &p.d_column);
  p.beta = g.beta;
  const int64_t columns = g.b_tensor_scale_columns;
  p.columns_a_factor = static_cast<uint32_t>(columns == 0 ? g.n : std::min(columns, g.n));
  p.c_type = static_cast<uint32_t>(may_read_c(g) ? g.c_type : NVFP4_TYPE_NONE);
  p.d_type = static_cast<uint32_t>(g.d_type);
  p.bias_type = static_cast<uint32_t>(g.bias_type);
  p.activation = static_cast<uint32_t>(g.activation);
  p.bias_per_row = g.bias_axis == NVFP4_BIAS_AXIS_ROW;
  p.a_scale_per_row = g.a_tensor_scale_rows != 0;
  p.d_amax = g.d_amax;
  p.d_row_amax = g.d_row_amax;
  if (has_amax(g)) p.activation |= kTakesAmax;
  set_scales_of_d(g, &p);
  p.kind = kind_of(g, p);
  return p;
}

}  // namespace nvfp4
