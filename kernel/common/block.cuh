// SPDX-License-Identifier: MIT
// Quantizes a block of 16 numbers to a scale and codes, with the bits of nvfp4_quantize_host:
//     s = e4m3(amax / 6 / t), code = e2m1(x / (s * t))
//
// Three divisions and 16 more would take twice as long as memory does. If amax and t are neither
// huge nor tiny, nothing overflows or becomes subnormal, and a quotient a / b is computed as
//     r = 1 / b, once for all divisions by b,      q = a * r,      q - (q * b - a) * r
// Each operation is rounded once, and the difference is exact. The result equals the rounded a / b
// wherever a code changes. That depends on the 2^23 significands of b and on the neighbours of a
// few numbers, and a test covers all of them ("quotients without a division change codes where
// divisions do"). Otherwise the code divides.
#pragma once

#include "kernel/common/numbers.cuh"

namespace nvfp4 {

// ---- Quotients ---------------------------------------------------------------------------------

constexpr float kLargestElement = 6.0f;
constexpr float kPlainLow = 0x1p-50f, kPlainHigh = 0x1p50f;

// True for a magnitude between those limits; false for zero and NaN.
__device__ inline bool is_plain(float f) {
  return __float_as_uint(f) - __float_as_uint(kPlainLow) <
         __float_as_uint(kPlainHigh) - __float_as_uint(kPlainLow);
}

// -0 if a is -0: a difference of equals is +0, and subtracting it keeps a q of -0.
__device__ inline float quotient(float a, float b, float reciprocal) {
  const float q = __fmul_rn(a, reciprocal);
  return __fmaf_rn(__fmaf_rn(q, b, -a), -reciprocal, q);
}

struct TensorScale {
  float t, reciprocal;
  bool plain;
};
__device__ inline TensorScale tensor_scale_of(float t) { return {t, __frcp_rn(t), is_plain(t)}; }

// ---- E2M1 --------------------------------------------------------------------------------------

#if __CUDA_ARCH__ >= 1000

// cvt.rn.satfinite.e2m1x2.f32  d, a, b;                                           PTX 8.6, sm_100f
// Eight numbers without NaN, the first in the lowest bits. Larger ones become 6.
__device__ inline uint32_t eight_e2m1(const float (&f)[8]) {
  uint32_t codes;
  asm("{ .reg .b8 a, b, c, d;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 a, %2, %1;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b, %4, %3;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 c, %6, %5;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 d, %8, %7;\n\t"
      "mov.b32 %0, {a, b, c, d}; }"
      : "=r"(codes)
      : "f"(f[0]), "f"(f[1]), "f"(f[2]), "f"(f[3]), "f"(f[4]), "f"(f[5]), "f"(f[6]), "f"(f[7]));
  return codes;
}

// The same for four numbers, in 16 bits.
__device__ inline uint32_t four_e2m1(const float (&f)[4]) {
  uint32_t codes;
  asm("{ .reg .b8 a, b;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 a, %2, %1;\n\t"
      "cvt.rn.satfinite.e2m1x2.f32 b, %4, %3;\n\t"
      "mov.b32 %0, {a, b, a, b}; }"
      : "=r"(codes)
      : "f"(f[0]), "f"(f[1]), "f"(f[2]), "f"(f[3]));
  return codes & 0xFFFF;
}

#else

// The same by arithmetic. The numbers at which codes change are k/4 times a power of two with odd
// k. They alternate between rounding down and up, as a tie goes to the even code. The first step
// moves numbers with a significand of 1.5 or 1.75 up by one unit in the last place, but none of 1
// or 1.25, so that every tie goes down. Times 2^-126 a number below 1 is subnormal, and all bits
// from 22 on are the code. That product is rounded up, away from the ties.
__device__ inline uint32_t append_e2m1(uint32_t codes, float number) {
  constexpr float kThirdOfUnit = 0.36f * 0x1p-23f;
  constexpr float kLargest = 6.5f;  // becomes 6; no code reaches 8
  const float magnitude = fminf(fabsf(number), kLargest);
  const float no_tie = __fmaf_rn(magnitude, kThirdOfUnit, magnitude);
  const uint32_t bits = __float_as_uint(__fmul_ru(no_tie, 0x1p-126f));
  // The code moves from bits 22..24 to 28..30, and the sign above it.
  const uint32_t top = bits * 64 + 0x1FFFFF * 64;
  return __funnelshift_l(top | (__float_as_uint(number) & kSign), codes, 4);
}
__device__ inline uint32_t eight_e2m1(const float (&f)[8]) {
  uint32_t codes = 0;
#pragma unroll
  for (int i = 7; i >= 0; --i) codes = append_e2m1(codes, f[i]);
  return codes;
}
__device__ inline uint32_t four_e2m1(const float (&f)[4]) {
  uint32_t codes = 0;
#pragma unroll
  for (int i = 3; i >= 0; --i) codes = append_e2m1(codes, f[i]);
  return codes;
}

#endif

// ---- A block -----------------------------------------------------------------------------------

struct Block {
  uint32_t low, high;  // codes of eight elements each, the first in the lowest bits
  uint32_t scale;
};

// The largest magnitude, or NaN if an element is NaN.
__device__ inline float largest_magnitude(const float (&x)[kBlock]) {
  float even = fabsf(x[0]), odd = fabsf(x[1]);
#pragma unroll
  for (uint32_t i = 2; i < kBlock; i += 2) {
    even = max_nan(even, fabsf(x[i]));
    odd = max_nan(odd, fabsf(x[i + 1]));
  }
  return max_nan(even, odd);
}

__device__ inline Block block_by_quotients(const float (&x)[kBlock], float largest,
                                           const TensorScale& t) {
  const float sixth = quotient(largest, kLargestElement, 1.0f / kLargestElement);
  const uint32_t scale = e4m3_code(quotient(sixth, t.t, t.reciprocal));
  if (scale == 0) return {0, 0, 0};
  const float step = __fmul_rn(e4m3_value(scale), t.t);
  const float reciprocal = __frcp_rn(step);
  float low[8], high[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    low[i] = quotient(x[i], step, reciprocal);
    high[i] = quotient(x[8 + i], step, reciprocal);
  }
  return {eight_e2m1(low), eight_e2m1(high), scale};
}

// Divides as the expressions say. A NaN makes the scale NaN, since elements cannot represent it. An
// infinity becomes 6 even if the step is infinite too.
__device__ inline Block block_by_divisions(const float (&x)[kBlock], float largest, float t) {
  if (largest != largest) return {0, 0, kScaleNan};
  const uint32_t scale = e4m3_code(__fdiv_rn(__fdiv_rn(largest, kLargestElement), t));
  if (scale == 0 || scale == kScaleNan) return {0, 0, scale};
  const float step = __fmul_rn(e4m3_value(scale), t);
  float low[8], high[8];
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const bool infinite = magnitude_bits(x[i]) == kF32Infinity;
    (i < 8 ? low[i] : high[i - 8]) = infinite ? x[i] : __fdiv_rn(x[i], step);
  }
  return {eight_e2m1(low), eight_e2m1(high), scale};
}

__device__ inline Block quantize_block(const float (&x)[kBlock], const TensorScale& t) {
  const float largest = largest_magnitude(x);
  return t.plain && is_plain(largest) ? block_by_quotients(x, largest, t)
                                      : block_by_divisions(x, largest, t.t);
}

}  // namespace nvfp4
