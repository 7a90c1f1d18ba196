// SPDX-License-Identifier: MIT
// The epilogue of gated products for sm_90a and sm_100a. It makes D, of any type and order, from
// two fp32 sums per element in shared memory (gate.h). A thread has four neighbouring columns of
// some rows, as in store_general.
#pragma once

#include <cstdint>

#include "kernel/common/activation.cuh"
#include "kernel/common/epilogue.cuh"
#include "kernel/common/gate.h"

namespace nvfp4 {

// SiLU with a factor in its exponent. w_low has the rounding error of alpha * a.
struct GateSilu {
  float alpha;

  __device__ bool is_plain() const { return alpha == 1; }  // with the same results
  __device__ Exponent operator()(float magnitude) const {
    const float log2e = f32(0x3FB8AA3B);
    const float a = fminf(magnitude, 16384.0f);
    const float u = __fmul_rn(alpha, a), u_low = __fmaf_rn(alpha, a, -u);
    const float v = fminf(u, 128.0f);
    const float w = __fmul_rn(-v, log2e);
    const float low = __fmaf_rn(-v, f32(0x32A57060), __fmaf_rn(-v, log2e, -w));
    return {a, w, __fmaf_rn(-u_low, log2e, low)};
  }
};

// Replaces x by act(x) * (y + beta), for several elements. A comparison with NaN is false.
template <uint32_t kCount>
__device__ void multiply_gated(uint32_t activation, const GateParams& gate, float (&x)[kCount],
                               float (&y)[kCount]) {
  if (gate.limit < f32(kF32Infinity)) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      x[i] = x[i] > gate.limit ? gate.limit : x[i];
      y[i] = y[i] > gate.limit ? gate.limit : y[i];
      y[i] = y[i] < -gate.limit ? -gate.limit : y[i];
    }
  }
  activate(activation, x, GateSilu{gate.silu_alpha});
  if (gate.beta != 0) {
#pragma unroll
    for (float& one : y) one = __fadd_rn(one, gate.beta);
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) x[i] = __fmul_rn(x[i], y[i]);
}

// Factors and bias of one of the two sums that all rows of a thread's columns share.
struct GatedColumns {
  float scale_of_rows, scale_of_columns;  // alpha without A's factor of a row; B's factor

  template <typename Params>
  __device__ GatedColumns(const Params& p, float alpha, const float* alpha_device,
                          const float* b_tensor_scale, uint32_t n) {
    const EpilogueParams& e = p.epilogue;
    scale_of_rows = alpha_device == nullptr ? alpha : load_scalar(alpha_device);
    if (e.a_tensor_scale != nullptr && e.a_scale_per_row == 0) {
      scale_of_rows = __fmul_rn(scale_of_rows, load_scalar(e.a_tensor_scale));
    }
    scale_of_columns =
        b_tensor_scale == nullptr ? 1.0f : load_scalar(b_tensor_scale + n / e.columns_a_factor);
  }
  // If rows have no factors, a_scale is 1, which changes no product.
  __device__ float of_row(float a_scale) const {
    return __fmul_rn(__fmul_rn(scale_of_rows, a_scale), scale_of_columns);
  }
};

// Loads four sums of row m from shared memory, scales them and adds the bias, which begins at
// element `bias_first`.
__device__ inline void load_scaled(const EpilogueParams& e, uint32_t at, float factor, float scale,
                                   const void* bias, int64_t bias_first, uint32_t m, uint32_t n,
                                   uint32_t count, float (&x)[4]) {
  const float4 sum = ptx::ld_shared_v4_f32(at);
  x[0] = sum.x, x[1] = sum.y, x[2] = sum.z, x[3] = sum.w;
#pragma unroll
  for (float& one : x) one = __fmul_rn(scale, __fmul_rn(one, factor));
  if (e.bias_type == kTypeNone) return;
  const bool per_row = e.bias_per_row != 0;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t index = per_row ? m : n + i;
    x[i] =
        __fadd_rn(x[i], load_element(bias, e.bias_type, bias_first + index, per_row || i < count));
  }
}

// The factors of the two sums, the host's or those of a group, the element of both arrays of biases
// at which the group's begin, and what it has of a D with scales.
struct GateAlphas {
  float of_b, of_b2;
  int64_t bias_first = 0;
  ScalesOfGroup d_scales = {};
};

// The sums with the rows of b2 are `apart` bytes after those with the rows of b. `factor` is a
// power of two that both lack.
template <typename Params>
__device__ __forceinline__ void store_gated(const Params& p, const GateParams& gate,
                                            const GateAlphas& alphas, SumRows rows, uint32_t apart,
                                            float factor) {
  const EpilogueParams& e = p.epilogue;
  const uint32_t n = rows.n;
  if (n >= p.n) return;
  ptx::griddepcontrol_wait();  // an earlier grid may write scalars and biases
  const uint32_t count = min(p.n - n, 4u);
  const int64_t d_first = rows.batch * p.d_batch_stride + n * e.d_column;
  const bool d_vectors = count == 4 && e.d_column == 1 && ((e.d_row | p.d_batch_stride) & 3) == 0;
  const GatedColumns of_b(p, alphas.of_b, e.alpha_device, e.b_tensor_scale, n);
  const GatedColumns of_b2(p, alphas.of_b2, gate.alpha2_device, gate.b2_tensor_scale, n);
  Amax amax;
#pragma unroll 1
  for (uint32_t m = rows.m; m < rows.m_end; m += rows.m_step, rows.at += rows.step) {
    const float a_scale =
        e.a_scale_per_row == 0 ? 1.0f : load_scalar(row_scale_at(p, rows.batch, m));
    float x[4], y[4];
    load_scaled(e, rows.at, factor, of_b.of_row(a_scale), e.bias, alphas.bias_first, m, n, count,
                x);
    load_scaled(e, rows.at + apart, factor, of_b2.of_row(a_scale), gate.bias2, alphas.bias_first, m,
                n, count, y);
    multiply_gated(e.activation % kTakesAmax, gate, x, y);
    if (has_amax(e)) amax.take(p, rows.batch, m, count, x);
    if (has_scales(e.d_type)) {
      store_scaled_four(e, p.d, d_first + m * e.d_row, rows.batch, m, n, d_vectors, x,
                        alphas.d_scales);
    } else {
      store_four(p.d, e.d_type, d_first + m * e.d_row, e.d_column, count, d_vectors, x);
    }
  }
  if (has_amax(e)) amax.put(e);
}

}  // namespace nvfp4
