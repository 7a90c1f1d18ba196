// SPDX-License-Identifier: MIT
#include "host/plan/apart.h"

#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "kernel/common/finish.h"

namespace nvfp4 {

namespace {

constexpr int64_t kStrideBytes = int64_t{1} << 40;  // strides of a tensor map are shorter

int64_t address(const void* array) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(array));
}

int64_t bytes_between(const void* a, const void* b) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(b) - reinterpret_cast<uintptr_t>(a));
}

// A stride of 0 would be b repeated, which it is.
bool are_batches(const nvfp4_gemm_desc& g) {
  const int64_t apart = bytes_between(g.b, g.b2);
  return g.l == 1 && apart < kStrideBytes && apart > -kStrideBytes;
}

// Rows begin at 16 bytes.
int64_t ld_of_sums(const nvfp4_gemm_desc& g) { return ceil_div(g.n, int64_t{4}) * 4; }

bool count_sums(const nvfp4_gemm_desc& g, int64_t* bytes) {
  const int64_t matrices = is_gated(g) ? 2 : g.l;
  return multiply(g.m, ld_of_sums(g), bytes) && multiply(*bytes, 4 * matrices, bytes) &&
         add(*bytes, 255, bytes) && finish_ctas(g) <= INT32_MAX;
}

// Whether everything in front of the quantizer is in the fast epilogue of a D in fp32.
bool is_quantized(const nvfp4_gemm_desc& g) {
  nvfp4_gemm_desc wide = g;
  wide.d_type = NVFP4_TYPE_F32;
  return format_of_d(g.d_type) != nullptr && g.l == 1 && !is_gated(g) &&
         make_epilogue(wide).kind == kEpilogueF32;
}

// Sets alpha to 1 and removes everything that comes after the sums.
void remove_epilogue(nvfp4_gemm_desc* g) {
  g->scalar_mode = NVFP4_SCALARS_HOST;
  g->alpha = 1;
  g->alpha_device = nullptr;
  g->a_tensor_scale = g->b_tensor_scale = nullptr;
  g->a_tensor_scale_rows = 0;
  g->b_tensor_scale_columns = 0;
  g->c = nullptr;
  g->c_type = NVFP4_TYPE_NONE;
  g->beta = 0;
  g->beta_device = nullptr;
  g->bias = nullptr;
  g->bias_type = NVFP4_TYPE_NONE;
  g->bias_axis = NVFP4_BIAS_AXIS_COLUMN;
  g->activation = NVFP4_ACTIVATION_NONE;
  g->d_amax = g->d_row_amax = nullptr;
}

void remove_gate(nvfp4_gemm_desc* g) {
  g->b2 = g->b2_scales = nullptr;
  g->b2_tensor_scale = nullptr;
  g->bias2 = nullptr;
  g->alpha2_device = nullptr;
  g->alpha2 = g->gate_limit = g->gate_alpha = g->gate_beta = 0;
}

// Two batches with the same tokens, whose weights are those with the lower addresses and the
// others. Packed ones may be any number of bytes apart, not just whole units.
void take_both_weights(const nvfp4_gemm_desc& g, nvfp4_gemm_desc* sums) {
  const bool swapped = comes_first(g.b2, g.b);
  const int64_t sign = swapped ? -1 : 1;
  sums->l = 2;
  sums->a_batch_stride = sums->a_scales_batch_stride_bytes = 0;
  sums->b = swapped ? g.b2 : g.b;
  sums->b_scales = swapped ? g.b2_scales : g.b_scales;
  const int64_t apart = sign * bytes_between(g.b, g.b2);
  sums->b_batch_stride = 2 * apart;
  if (g.b_packing != NVFP4_PACKING_NONE) sums->b_ld = apart;
  sums->b_scales_batch_stride_bytes = sign * bytes_between(g.b_scales, g.b2_scales);
}

}  // namespace

bool has_usual_rows(const nvfp4_gemm_desc& g) {
  const EpilogueParams e = make_epilogue(g);
  return e.d_column == 1 && g.n % 4 == 0 && e.c_type == kTypeNone && e.activation < kTakesAmax &&
         (e.bias_type == kTypeNone || e.bias_per_row == 0);
}

bool comes_first(const void* b2, const void* b) { return address(b2) < address(b); }

int64_t finish_ctas(const nvfp4_gemm_desc& g) {
  const int64_t down = ceil_div(g.m, int64_t{kFinishRows});
  int64_t ctas;
  if (!multiply(down, ceil_div(g.n, int64_t{kFinishColumns}), &ctas) ||
      !multiply(ctas, g.l, &ctas)) {
    return INT64_MAX;
  }
  return ctas;
}

Apart way_apart(const nvfp4_gemm_desc& g) {
  int64_t bytes;
  if (g.k == 0 || !count_sums(g, &bytes)) return Apart::one;
  if (is_gated(g)) return are_batches(g) && has_usual_rows(g) ? Apart::finish : Apart::one;
  if (make_epilogue(g).kind <= kEpilogueF32) return Apart::one;
  return is_quantized(g) ? Apart::quantizer : Apart::finish;
}

int64_t packed_batch_bytes(const nvfp4_gemm_desc& g) {
  if (g.b_ld != 0) return g.b_ld;
  return find_packing(g.b_packing)->stride_bytes(g.b_batch_stride, g.operand_format);
}

uint64_t sums_bytes(const nvfp4_gemm_desc& g) {
  int64_t bytes = 0;
  count_sums(g, &bytes);
  return static_cast<uint64_t>(bytes) / 256 * 256;
}

nvfp4_gemm_desc sums_product(const nvfp4_gemm_desc& g, Apart way) {
  nvfp4_gemm_desc sums = g;
  if (way == Apart::finish) remove_epilogue(&sums);
  if (is_gated(g)) take_both_weights(g, &sums);
  remove_gate(&sums);
  sums.d = g.workspace;
  sums.d_type = NVFP4_TYPE_F32;
  sums.cd_order = NVFP4_CD_ORDER_ROW_MAJOR;
  sums.d_ld = ld_of_sums(g);
  sums.d_batch_stride = g.m * sums.d_ld;
  sums.d_scales = nullptr;
  sums.d_tensor_scale = nullptr;
  sums.d_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  sums.d_scales_batch_stride_bytes = 0;
  sums.d_scale_rule = 0;
  const uint64_t bytes = sums_bytes(g);
  if (g.workspace != nullptr) sums.workspace = static_cast<uint8_t*>(g.workspace) + bytes;
  sums.workspace_bytes = g.workspace_bytes > bytes ? g.workspace_bytes - bytes : 0;
  return sums;
}

}  // namespace nvfp4
