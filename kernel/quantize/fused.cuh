// SPDX-License-Identifier: MIT
// Operations that engines perform right before a GEMM, fused with the quantization of their result:
// silu(x) * y, and RMSNorm. docs/numerics.md has the formulas and the order of the sum. All
// operations are fp32 and rounded once, without approximate instructions.
#pragma once

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/quantize/matrix.cuh"

namespace nvfp4 {

// Quantizes 16 elements of the result in the format that the caller asks for, and stores them.
__device__ inline void store_result(const FusedParams& p, uint32_t row, uint32_t block,
                                    const float (&z)[kBlock], const TensorScale& t) {
  if (p.format != kFormatNvfp4) {
    return store_block_ue8m0(p.nvfp4, p.format, p.floor_rule != 0, row, block, z);
  }
  store_block(p.nvfp4, row, block, quantize_block(z, t));
}

// ---- silu(x) * y -------------------------------------------------------------------------------

// x / (1 + 2^-w) of docs/numerics.md, "Activations", with its names. NaN stays NaN.
__device__ inline float silu(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction
  const float log2_e = __uint_as_float(0x3FB8AA3B), log2_e_low = __uint_as_float(0x32A57060);
  const float a = fminf(fabsf(x), 128.0f);
  const float w = __fmul_rn(-a, log2_e);
  const float w_low = __fmaf_rn(-a, log2_e_low, __fmaf_rn(-a, log2_e, -w));
  const float rounded = __fadd_rn(w, kRound);
  const float f = __fadd_rn(__fsub_rn(w, __fsub_rn(rounded, kRound)), w_low);
  constexpr uint32_t kPolynomial[] = {0x3AAF9F2A, 0x3C1D96A6, 0x3D635774,
                                      0x3E75FDEE, 0x3F317218, 0x3F800000};
  float p = __uint_as_float(0x3920FDDD);
#pragma unroll
  for (uint32_t i = 0; i < 6; ++i) p = __fmaf_rn(p, f, __uint_as_float(kPolynomial[i]));
  const uint32_t n = __float_as_uint(rounded) - __float_as_uint(kRound);
  const float s = __uint_as_float(__float_as_uint(0x1p64f) + (n << 23));
  const float d = __fmaf_rn(__fmul_rn(p, s), 0x1p-64f, 1.0f);
  const float quotient = __fdiv_rn(x < 0 ? __fmul_rn(-a, p) : x, d);
  const float result = x < 0 ? __fmul_rn(__fmul_rn(quotient, s), 0x1p-64f) : quotient;
  return x != x ? x : result;
}

template <typename Type>
__device__ void silu_mul(const FusedParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const Place place;
  const bool vectors = p.nvfp4.vectors != 0;
  ptx::griddepcontrol_wait();
  const TensorScale t = tensor_scale(p.scale);
  if (place.block >= written_blocks(p.nvfp4)) return;
  const bool there = place.block < p.nvfp4.blocks;  // otherwise zeros beyond K
  for (uint32_t row = place.row; row < p.nvfp4.rows; row += place.row_step) {
    Words<Type> x{}, y{};
    if (there) {
      x.load(block_at<Type>(p.x, p.x_ld, row, place.block), vectors);
      y.load(block_at<Type>(p.y, p.y_ld, row, place.block), vectors);
    }
    float z[kBlock];
#pragma unroll
    for (uint32_t i = 0; i < kBlock; ++i) z[i] = __fmul_rn(silu(x.value(i)), y.value(i));
    store_result(p, row, place.block, z, t);
  }
}

// ---- RMSNorm -----------------------------------------------------------------------------------

// The sum of a CTA's 256 columns, in every thread: neighbours are added first, then pairs of them,
// and so on.
__device__ inline float sum_of_columns(float column) {
  __shared__ float warps[kNormThreads / 32];
#pragma unroll
  for (uint32_t lanes = 1; lanes < 32; lanes *= 2) {
    column = __fadd_rn(column, __shfl_xor_sync(0xFFFFFFFF, column, lanes));
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = column;
  __syncthreads();
  float sum[kNormThreads / 32];
#pragma unroll
  for (uint32_t i = 0; i < kNormThreads / 32; ++i) sum[i] = warps[i];
#pragma unroll
  for (uint32_t n = 1; n < kNormThreads / 32; n *= 2) {
#pragma unroll
    for (uint32_t i = 0; i < kNormThreads / 32; i += 2) {
      if (i % (2 * n) == 0) sum[i] = __fadd_rn(sum[i], sum[i + n]);
    }
  }
  return sum[0];
}

// x + residual rounded to the type, which also replaces the residual.
template <typename Type>
__device__ void add_residual(const FusedParams& p, uint32_t row, uint32_t block, Words<Type>& x) {
  void* const at = block_at<Type>(p.y, p.y_ld, row, block);
  Words<Type> residual;
  residual.load(at, p.nvfp4.vectors != 0);
#pragma unroll
  for (uint32_t i = 0; i < Words<Type>::kCount; ++i) {
    uint32_t word = 0;
#pragma unroll
    for (uint32_t j = 0; j < Type::kPerWord; ++j) {
      const float sum = __fadd_rn(Type::value(x.word[i], j), Type::value(residual.word[i], j));
      word |= Type::round(sum) << 16 * j;
    }
    x.word[i] = word;
  }
  x.store(at, p.nvfp4.vectors != 0);
}

template <typename Type>
__device__ void* normed_at(const FusedParams& p, uint32_t row, uint32_t block) {
  return p.y != nullptr ? block_at<Type>(p.y, p.y_ld, row, block)
                        : block_at<Type>(p.x, p.x_ld, row, block);
}

template <typename Type>
__device__ float add_squares(const Words<Type>& h, float column) {
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) column = __fmaf_rn(h.value(i), h.value(i), column);
  return column;
}

template <typename Type>
__device__ void normed(const FusedParams& p, uint32_t block, const Words<Type>& h, float factor,
                       float (&z)[kBlock]) {
  Words<Type> weight;
  weight.load(block_at<Type>(p.weight, 0, 0, block), p.nvfp4.vectors != 0);
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    z[i] = __fmul_rn(__fmul_rn(h.value(i), factor), weight.value(i));
  }
}
template <typename Type>
__device__ void quantize_normed(const FusedParams& p, uint32_t row, uint32_t block,
                                const Words<Type>& h, float factor, const TensorScale& t) {
  float z[kBlock] = {};
  if (block < p.nvfp4.blocks) normed(p, block, h, factor, z);
  store_result(p, row, block, z, t);
}

// The row's tensor scale, made from its normalised elements.
template <typename Type, uint32_t kKept>
__device__ TensorScale scale_of_normed(const FusedParams& p, uint32_t row,
                                       const Words<Type> (&kept)[kKept], float factor) {
  const uint32_t blocks = p.nvfp4.blocks;
  uint32_t largest = 0;
  float z[kBlock];
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * kNormThreads;
    if (block >= blocks) continue;
    normed(p, block, kept[i], factor, z);
    largest = largest_finite_of(z, largest);
  }
  for (uint32_t block = threadIdx.x + kKept * kNormThreads; block < blocks; block += kNormThreads) {
    Words<Type> h;
    h.load(normed_at<Type>(p, row, block), p.nvfp4.vectors != 0);
    normed(p, block, h, factor, z);
    largest = largest_finite_of(z, largest);
  }
  return make_scale_of_row(p.scale, row, largest);
}

// A CTA takes a row. A thread keeps its first two blocks in registers; blocks beyond 8192 elements
// are read again, from cache. All loads are issued before anything waits for one.
template <typename Type>
__device__ void rms_norm(const FusedParams& p) {
  ptx::griddepcontrol_launch_dependents();
  constexpr uint32_t kKept = 2;
  const uint32_t row = blockIdx.x, blocks = p.nvfp4.blocks;
  const bool vectors = p.nvfp4.vectors != 0;
  ptx::griddepcontrol_wait();
  Words<Type> kept[kKept];
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * kNormThreads;
    if (block >= blocks) continue;
    kept[i].load(block_at<Type>(p.x, p.x_ld, row, block), vectors);
    ptx::prefetch_global_l1(block_at<Type>(p.weight, 0, 0, block));
  }
  float scale = p.scale.value;
  if (p.scale.source == kTensorScalePointer) scale = *p.scale.device;
  float column = 0;
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * kNormThreads;
    if (block >= blocks) continue;
    if (p.y != nullptr) add_residual(p, row, block, kept[i]);
    column = add_squares(kept[i], column);
  }
  const uint32_t others = threadIdx.x + kKept * kNormThreads;
  for (uint32_t block = others; block < blocks; block += kNormThreads) {
    Words<Type> h;
    h.load(block_at<Type>(p.x, p.x_ld, row, block), vectors);
    if (p.y != nullptr) add_residual(p, row, block, h);
    column = add_squares(h, column);
  }
  const float mean = __fdiv_rn(sum_of_columns(column), p.k);
  const float factor = __frcp_rn(__fsqrt_rn(__fadd_rn(mean, p.epsilon)));
  const bool own = p.scale.source == kTensorScaleRowAmax;
  const TensorScale t = own ? scale_of_normed(p, row, kept, factor) : tensor_scale_of(scale);
  const uint32_t written = written_blocks(p.nvfp4);
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * kNormThreads;
    if (block < written) quantize_normed(p, row, block, kept[i], factor, t);
  }
  for (uint32_t block = others; block < written; block += kNormThreads) {
    Words<Type> h;
    if (block < blocks) h.load(normed_at<Type>(p, row, block), vectors);
    quantize_normed(p, row, block, h, factor, t);
  }
}

}  // namespace nvfp4
