// SPDX-License-Identifier: MIT
// act() of the epilogue by the formulas of docs/numerics.md, "Activations", with its names. Every
// operation is an intrinsic rounded to nearest even, so that no compiler can replace it.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.h"
#include "kernel/common/numbers.cuh"
#include "kernel/ptx/convert.cuh"

namespace nvfp4 {

// A constant given by its bits.
__device__ inline float f32(uint32_t bits) { return __uint_as_float(bits); }

constexpr uint32_t kF32One = 0x3F800000, kF32Nan = 0x7FFFFFFF;
constexpr uint32_t kF32TwoToMinus64 = 0x1F800000;

// a / b with the bits of a division, for a finite a and a b from 1 to 32. The steps are those of
// __fdiv_rn. That function first tests whether something overflows or becomes subnormal, so a
// branch separates each division from the next one. There is no such test here, so several
// divisions overlap. Remainders are exact unless they are subnormal. That happens only if x is
// below 2^-26, and then b is 2, a power of two, so each step except the last is exact. A test finds
// all quotients near the middle of two floats ("a division of activations is right ..").
__device__ inline float quotient_rn(float a, float b) {
  const float guess = ptx::rcp_approx_ftz_f32(b);
  const float reciprocal = __fmaf_rn(guess, __fmaf_rn(-b, guess, f32(kF32One)), guess);
  const float q = __fmul_rn(a, reciprocal);
  return __fmaf_rn(__fmaf_rn(q, b, -a), -reciprocal, q);  // -0 if a is -0
}

// 2^(w + w_low) = p * s * 2^-64 for w <= 0.
struct PowerOfTwo {
  float p, s;
};
__device__ inline PowerOfTwo power_of_two(float w, float w_low) {
  const float round = f32(0x4B400000);  // 1.5 * 2^23: a sum with it has no fraction
  const float rounded = __fadd_rn(w, round);
  const float f = __fadd_rn(__fsub_rn(w, __fsub_rn(rounded, round)), w_low);
  float p = f32(0x3920FDDD);
  p = __fmaf_rn(p, f, f32(0x3AAF9F2A));
  p = __fmaf_rn(p, f, f32(0x3C1D96A6));
  p = __fmaf_rn(p, f, f32(0x3D635774));
  p = __fmaf_rn(p, f, f32(0x3E75FDEE));
  p = __fmaf_rn(p, f, f32(0x3F317218));
  p = __fmaf_rn(p, f, f32(kF32One));
  return {p, f32((__float_as_uint(rounded) + 64 + 127) << 23)};
}

// Exponent of the power: w and w_low, for a = min(|x|, where the result of -a is -0).
struct Exponent {
  float a, w, w_low;
};

struct Silu {
  static __device__ constexpr bool is_plain() { return true; }
  __device__ Exponent operator()(float magnitude) const {
    const float a = fminf(magnitude, 128.0f);
    const float w = __fmul_rn(-a, f32(0x3FB8AA3B));
    return {a, w, __fmaf_rn(-a, f32(0x32A57060), __fmaf_rn(-a, f32(0x3FB8AA3B), -w))};
  }
};

__device__ inline Exponent gelu_tanh_exponent(float magnitude) {
  const float a = fminf(magnitude, 11.0f);
  const float z = __fmul_rn(a, a), z_low = __fmaf_rn(a, a, -z);
  const float c1 = f32(0x40135740), c3 = f32(0x3DD2D3E8);
  const float q = __fmaf_rn(c3, z, c1);
  float r = __fmaf_rn(c3, z, __fsub_rn(c1, q));
  r = __fmaf_rn(f32(0xB10A8D57), z, r);
  r = __fadd_rn(__fmaf_rn(c3, z_low, r), f32(0x3704379D));
  const float w = __fmul_rn(-a, q);
  return {a, w, __fmaf_rn(-a, r, __fmaf_rn(-a, q, -w))};
}

__device__ inline Exponent gelu_erf_exponent(float magnitude) {
  const float a = fminf(magnitude, 15.0f);
  const float z = __fmul_rn(a, a), z_low = __fmaf_rn(a, a, -z);
  const float half_log2e = f32(0x3F38AA3B);
  const float w = __fmul_rn(-z, half_log2e);
  const float low = __fmaf_rn(-z, f32(0x32257060), __fmaf_rn(-z, half_log2e, -w));
  return {a, w, __fmaf_rn(-z_low, half_log2e, low)};
}

// Half of erfcx(a / sqrt(2)).
__device__ inline float half_erfcx(float a) {
  const float t = quotient_rn(__fsub_rn(a, 4.0f), __fadd_rn(a, 4.0f));
  float g = f32(0xB886D29A);
  g = __fmaf_rn(g, t, f32(0xB92E37B9));
  g = __fmaf_rn(g, t, f32(0x3A2C69CD));
  g = __fmaf_rn(g, t, f32(0x3A03723C));
  g = __fmaf_rn(g, t, f32(0xBC0B3B9F));
  g = __fmaf_rn(g, t, f32(0x3CFCDA2C));
  g = __fmaf_rn(g, t, f32(0xBD92DAF7));
  g = __fmaf_rn(g, t, f32(0x3DFEBA83));
  g = __fmaf_rn(g, t, f32(0xBE2E7CBF));
  return __fmaf_rn(g, t, f32(0x3DC15A5E));
}

// One of the three exponents, for all elements. The kind is tested once, so that there is no branch
// between elements. `silu` computes SiLU's: in gated products it has a factor (gated.cuh), mostly
// 1.
template <uint32_t kCount, typename SiluOf>
__device__ void find_exponents(uint32_t activation, const float (&x)[kCount], const SiluOf& silu,
                               Exponent (&e)[kCount]) {
  if (activation == kActivationSilu && silu.is_plain()) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) e[i] = Silu()(fabsf(x[i]));
  } else if (activation == kActivationSilu) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) e[i] = silu(fabsf(x[i]));
  } else if (activation == kActivationGeluTanh) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) e[i] = gelu_tanh_exponent(fabsf(x[i]));
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) e[i] = gelu_erf_exponent(fabsf(x[i]));
  }
}

__device__ inline float gelu_erf_of(float x, const Exponent& e, const PowerOfTwo& power) {
  const float tiny = f32(kF32TwoToMinus64), one = f32(kF32One);
  const float h = __fmul_rn(power.p, half_erfcx(e.a));
  const float below = __fmul_rn(__fmul_rn(__fmul_rn(-e.a, h), power.s), tiny);
  const float above = __fmul_rn(x, __fsub_rn(one, __fmul_rn(__fmul_rn(h, power.s), tiny)));
  return x < 0 ? below : above;
}

// For SiLU, and for GELU by tanh. x is finite.
__device__ inline float quotient_of(float x, const Exponent& e, const PowerOfTwo& power) {
  const float tiny = f32(kF32TwoToMinus64), one = f32(kF32One);
  const float d = __fmaf_rn(__fmul_rn(power.p, power.s), tiny, one);
  const float quotient = quotient_rn(x < 0 ? __fmul_rn(-e.a, power.p) : x, d);
  return x < 0 ? __fmul_rn(__fmul_rn(quotient, power.s), tiny) : quotient;
}

// The three activations that are built from a power of two, for several elements at once: a thread
// that computed one after the other would wait for every operation. A single test finds out whether
// any element is NaN or infinite.
template <uint32_t kCount, typename SiluOf>
__device__ void smooth_activations(uint32_t activation, float (&x)[kCount], const SiluOf& silu) {
  Exponent e[kCount];
  PowerOfTwo power[kCount];
  float y[kCount];
  find_exponents(activation, x, silu, e);
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) power[i] = power_of_two(e[i].w, e[i].w_low);
  if (activation == kActivationGeluErf) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) y[i] = gelu_erf_of(x[i], e[i], power[i]);
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) y[i] = quotient_of(x[i], e[i], power[i]);
  }
  float largest = fabsf(x[0]);
#pragma unroll
  for (uint32_t i = 1; i < kCount; ++i) largest = max_nan(largest, fabsf(x[i]));
  if (!(largest < f32(kF32Infinity))) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      if (!(x[i] < f32(kF32Infinity))) y[i] = x[i] > 0 ? x[i] : f32(kF32Nan);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) x[i] = y[i];
}

template <uint32_t kCount, typename SiluOf = Silu>
__device__ void activate(uint32_t activation, float (&x)[kCount], const SiluOf& silu = {}) {
  if (activation == kActivationNone) return;
  const bool squared = activation == kActivationReluSquared;
  if (activation != kActivationRelu && !squared) return smooth_activations(activation, x, silu);
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    const float above = x[i] > 0 ? x[i] : 0.0f;
    x[i] = x[i] != x[i] ? f32(kF32Nan) : squared ? __fmul_rn(above, above) : above;
  }
}

}  // namespace nvfp4
