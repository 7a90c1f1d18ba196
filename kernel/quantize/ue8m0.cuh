// SPDX-License-Identifier: MIT
// Quantizes a block of 16 or 32 numbers to a UE8M0 scale, 2^(byte - 127), and codes, with the bits
// of nvfp4_quantize_reference. With 32, two neighbouring threads have half a block each and find
// the largest magnitude together.
//
// Dividing a number by such a scale means multiplying by a power of two. The product is exact if
// its code is not 0, so the number is rounded once.
#pragma once

#include "kernel/common/block.cuh"

namespace nvfp4 {

constexpr uint32_t kUe8m0Nan = 0xFF, kUe8m0Largest = 254;

// The factor 2^power, for -127, which is subnormal, to 127.
__device__ inline float power_of_two(int32_t power) {
  return __uint_as_float(power == -127 ? 0x00400000u : static_cast<uint32_t>(power + 127) << 23);
}

// Two lanes share a block; both take part, while other lanes of the warp may have left.
__device__ inline float largest_of_pair(float own) {
  const uint32_t pair = 0b11u << (threadIdx.x % 32 & ~1u);
  return max_nan(own, __shfl_xor_sync(pair, own, 1));
}

// The magnitude is neither 0 nor NaN. The scale is its exponent less 2, for the 4 of E2M1, and one
// more where an element would be clipped, unless the rule is to clip.
__device__ inline uint32_t ue8m0_scale(float largest, bool floor) {
  const uint32_t bits = __float_as_uint(largest);
  if (bits == kF32Infinity) return kUe8m0Largest;
  const bool above = (bits & 0x7FFFFF) > 0x400000 && !floor;
  return static_cast<uint32_t>(max(static_cast<int32_t>(bits >> 23) - 2 + (above ? 1 : 0), 0));
}

__device__ inline Block quantize_block_ue8m0(const float (&x)[kBlock], float largest, bool floor) {
  if (largest != largest) return {0, 0, kUe8m0Nan};
  if (largest == 0.0f) return {0, 0, 0};
  const uint32_t scale = ue8m0_scale(largest, floor);
  const float factor = power_of_two(127 - static_cast<int32_t>(scale));
  float low[8], high[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    low[i] = __fmul_rn(x[i], factor);
    high[i] = __fmul_rn(x[8 + i], factor);
  }
  return {eight_e2m1(low), eight_e2m1(high), scale};
}

// A code times its scale, which fp32 holds or rounds to infinity.
__device__ inline float dequantized_ue8m0(uint32_t code, uint32_t scale) {
  if (scale == kUe8m0Nan) return __uint_as_float(0x7FFFFFFF);
  return __fmul_rn(e2m1_value(code), power_of_two(static_cast<int32_t>(scale) - 127));
}

}  // namespace nvfp4
