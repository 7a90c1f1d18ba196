// SPDX-License-Identifier: MIT
// Quantizes to NVFP4 by NVFP4_SCALE_RULE_4OVER6, with the bits of nvfp4_quantize_reference: a block
// has, of the scales that map its largest magnitude to 6 and to 4, the one with the smaller sum of
// squared errors, and that for 6 if no sum is smaller. These are kernels of their own: with this
// rule in it nvfp4_quantize_bf16 would take 79 registers in place of 56.
#pragma once

#include "kernel/common/block.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/quantize/matrix.cuh"

namespace nvfp4 {

// e4m3(largest / code / t). A fourth is exact where the numbers are plain.
__device__ inline uint32_t scale_by_quotients(float largest, bool to_four, const TensorScale& t) {
  const float part = to_four ? __fmul_rn(largest, 0.25f)
                             : quotient(largest, kLargestElement, 1.0f / kLargestElement);
  return e4m3_code(quotient(part, t.t, t.reciprocal));
}
__device__ inline uint32_t scale_by_divisions(float largest, bool to_four, float t) {
  return e4m3_code(__fdiv_rn(__fdiv_rn(largest, to_four ? 4.0f : kLargestElement), t));
}

// The codes of a block under a scale, as block.cuh makes them.
__device__ inline Block under_scale(const float (&x)[kBlock], uint32_t scale, float t, bool plain) {
  if (scale == 0 || scale == kScaleNan) return {0, 0, scale};
  const float step = __fmul_rn(e4m3_value(scale), t);
  float low[8], high[8];
  if (plain) {
    const float reciprocal = __frcp_rn(step);
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      low[i] = quotient(x[i], step, reciprocal);
      high[i] = quotient(x[8 + i], step, reciprocal);
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kBlock; ++i) {
      const bool infinite = magnitude_bits(x[i]) == kF32Infinity;
      (i < 8 ? low[i] : high[i - 8]) = infinite ? x[i] : __fdiv_rn(x[i], step);
    }
  }
  return {eight_e2m1(low), eight_e2m1(high), scale};
}

// The squares of the errors, added in the order of the elements.
__device__ inline float squared_error(const float (&x)[kBlock], const Block& b, float t) {
  const float scale = e4m3_value(b.scale);
  float sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint32_t code = (i < 8 ? b.low : b.high) >> i % 8 * 4 & 15;
    const float error = __fsub_rn(__fmul_rn(__fmul_rn(e2m1_value(code), scale), t), x[i]);
    sum = __fadd_rn(sum, __fmul_rn(error, error));
  }
  return sum;
}

__device__ inline Block quantize_block_4over6(const float (&x)[kBlock], const TensorScale& t) {
  const float largest = largest_magnitude(x);
  Block kept = {0, 0, kScaleNan};
  if (largest != largest) return kept;
  const bool plain = t.plain && is_plain(largest);
  float least = 0;
#pragma unroll 1
  for (uint32_t to_four = 0; to_four < 2; ++to_four) {
    const uint32_t scale = plain ? scale_by_quotients(largest, to_four != 0, t)
                                 : scale_by_divisions(largest, to_four != 0, t.t);
    const Block block = under_scale(x, scale, t.t, plain);
    const float error = squared_error(x, block, t.t);
    if (to_four != 0 && !(error < least)) break;
    kept = block;
    least = error;
  }
  return kept;
}

// Which blocks a thread takes: some rows' blocks of a column, or some of a row's.
struct Walk {
  uint32_t row, block, row_step, block_step;
  __device__ explicit Walk(const Place& place)
      : row(place.row), block(place.block), row_step(place.row_step), block_step(0) {}
  __device__ explicit Walk(uint32_t of_row)
      : row(of_row), block(threadIdx.x), row_step(0), block_step(kQuantizeThreads) {}
  __device__ bool ended(const Nvfp4Matrix& q) const {
    return row >= q.rows || block >= written_blocks(q);
  }
  __device__ void step() {
    row += row_step;
    block += block_step;
  }
};

template <typename Type>
__device__ void load_block(const QuantizeParams& p, const Walk& at, float (&x)[kBlock]) {
  Words<Type> words{};  // zeros beyond K
  if (at.block < p.nvfp4.blocks)
    words.load(block_at<Type>(p.x, p.x_ld, at.row, at.block), p.nvfp4.vectors != 0);
  words.values(x);
}

template <typename Type>
__device__ TensorScale scale_made_of_row(const QuantizeParams& p, Walk at) {
  uint32_t largest = 0;
  for (; !at.ended(p.nvfp4); at.step()) {
    float x[kBlock];
    load_block<Type>(p, at, x);
    largest = largest_finite_of(x, largest);
  }
  return make_scale_of_row(p.scale, at.row, largest);
}

template <typename Type>
__device__ void quantize_4over6(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const bool makes_rows = p.scale.source == kTensorScaleRowAmax;
  Walk at = makes_rows ? Walk(blockIdx.x) : Walk(Place());
  const TensorScale t = makes_rows ? scale_made_of_row<Type>(p, at) : tensor_scale(p.scale);
  for (; !at.ended(p.nvfp4); at.step()) {
    float x[kBlock];
    load_block<Type>(p, at, x);
    const bool read = is_of_rows(p.scale);
    const TensorScale its = read ? tensor_scale_of(scale_of_row(p.scale, at.row)) : t;
    store_block(p.nvfp4, at.row, at.block, quantize_block_4over6(x, its));
  }
}

}  // namespace nvfp4
