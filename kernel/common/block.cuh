// SPDX-License-Identifier: MIT
// A block of 16 numbers to its scale and its codes, with the bits of nvfp4_quantize_host:
//     s = e4m3(amax / 6 / t), code = e2m1(x / (s * t))
//
// Three divisions and 16 more would take twice as long as the memory does. Where amax and t are
// neither huge nor tiny, which leaves nothing to overflow or to become subnormal, a quotient a / b
// is
//     r = 1 / b, once for all that is divided by b,      q = a * r,      q - (q * b - a) * r
// each operation rounded once, the difference exact. That is a / b rounded wherever a code changes:
// a function of the 2^23 significands of b and of the neighbours of a few numbers, all of which a
// test goes through ("quotients without a division change codes where divisions do"). Else it
// divides.
#pragma once

#include "kernel/common/numbers.cuh"

namespace nvfp4 {

// ---- Quotients ---------------------------------------------------------------------------------

constexpr float kLargestElement = 6.0f;
constexpr float kPlainLow = 0x1p-50f, kPlainHigh = 0x1p50f;

// Between those, for a magnitude, zero and NaN excluded.
__device__ inline bool is_plain(float f) {
  return __float_as_uint(f) - __float_as_uint(kPlainLow) <
         __float_as_uint(kPlainHigh) - __float_as_uint(kPlainLow);
}

// -0 where a is: a difference of equals is +0, and minus that leaves a q of -0 alone.
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
// Eight numbers that are no NaN, the first in the lowest bits: 6 where one is larger.
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

// The same of four, in 16 bits.
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
// k: from one down to the code below, from the next up, in turns, as a tie goes to the even code.
// The first step moves up by one unit in the last place what has a significand of 1.5 or 1.75, none
// of 1 or 1.25, so that every tie goes down. Times 2^-126 a number below 1 is subnormal, and all
// bits from 22 on are the code. That product is rounded up, away from the ties.
__device__ inline uint32_t append_e2m1(uint32_t codes, float number) {
  constexpr float kThirdOfUnit = 0.36f * 0x1p-23f;
  constexpr float kLargest = 6.5f;  // becomes 6; and no code reaches 8
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

// The largest magnitude, NaN where an element is.
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

// As the expressions stand. A NaN makes the scale NaN, as it would vanish among the elements. An
// infinity is 6 even where the step is infinite, too.
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
