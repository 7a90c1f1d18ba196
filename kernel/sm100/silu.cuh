// SPDX-License-Identifier: MIT
// SiLU of a lane's values, two at once, with the bits of kernel/common/activation.cuh. Its steps
// are those, but for what changes no bit: below 87 in magnitude the power of two is a normal
// number, so its factor 2^64 is not needed and nothing is clamped, and signs move where they cost
// nothing.
#pragma once

#include <cstdint>

#include "kernel/common/activation.cuh"
#include "kernel/ptx/packed_f32.cuh"

namespace nvfp4 {

constexpr uint32_t kF32EightySeven = 0x42AE0000;

__device__ inline ptx::F32x2 f32x2(uint32_t bits) { return ptx::both(f32(bits)); }

__device__ inline void silu_of_two(float& low, float& high) {
  using ptx::F32x2;
  const F32x2 minus_one = ptx::both(-1.0f), one = ptx::both(1.0f), round = f32x2(0x4B400000);
  const F32x2 a = ptx::pack(fabsf(low), fabsf(high));
  const F32x2 w = ptx::mul(a, f32x2(0xBFB8AA3B));
  const F32x2 minus_w_low = ptx::fma(a, f32x2(0x32A57060), ptx::fma(a, f32x2(0x3FB8AA3B), w));
  const F32x2 rounded = ptx::add(w, round);
  const F32x2 whole = ptx::add(rounded, f32x2(0xCB400000));
  const F32x2 f = ptx::fma(minus_w_low, minus_one, ptx::fma(whole, minus_one, w));
  F32x2 p = f32x2(0x3920FDDD);
  p = ptx::fma(p, f, f32x2(0x3AAF9F2A));
  p = ptx::fma(p, f, f32x2(0x3C1D96A6));
  p = ptx::fma(p, f, f32x2(0x3D635774));
  p = ptx::fma(p, f, f32x2(0x3E75FDEE));
  p = ptx::fma(p, f, f32x2(0x3F317218));
  p = ptx::fma(p, f, one);
  const auto power_of = [](float sum) { return f32((__float_as_uint(sum) + 127) << 23); };
  float s[2], of_p[2], of_d[2];
  ptx::unpack(rounded, s[0], s[1]);
  s[0] = power_of(s[0]), s[1] = power_of(s[1]);
  ptx::unpack(p, of_p[0], of_p[1]);
  const F32x2 d = ptx::fma(p, ptx::pack(s[0], s[1]), one);
  ptx::unpack(d, of_d[0], of_d[1]);
  // quotient_rn with -1 / d for 1 / d: it makes the quotient's negative.
  const F32x2 x = ptx::pack(low, high);
  const F32x2 dividend =
      ptx::mul(x, ptx::pack(low < 0 ? of_p[0] : 1.0f, high < 0 ? of_p[1] : 1.0f));
  const F32x2 guess =
      ptx::pack(ptx::rcp_approx_ftz_f32(-of_d[0]), ptx::rcp_approx_ftz_f32(-of_d[1]));
  const F32x2 reciprocal = ptx::fma(guess, ptx::fma(d, guess, one), guess);
  const F32x2 q = ptx::mul(dividend, reciprocal);
  const F32x2 quotient = ptx::fma(ptx::fma(q, d, dividend), reciprocal, q);
  const F32x2 y = ptx::mul(quotient, ptx::pack(low < 0 ? -s[0] : -1.0f, high < 0 ? -s[1] : -1.0f));
  ptx::unpack(y, low, high);
}

// Four values after four others. They move on from register to register, so that the code exists
// once.
template <uint32_t kCount, typename SiluOf>
__device__ void activate_by_four(uint32_t activation, float (&x)[kCount], const SiluOf& silu) {
#pragma unroll 1
  for (uint32_t i = 0; i < kCount; i += 4) {
    float four[4] = {x[0], x[1], x[2], x[3]};
    activate(activation, four, silu);
#pragma unroll
    for (uint32_t j = 4; j < kCount; ++j) x[j - 4] = x[j];
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) x[kCount - 4 + j] = four[j];
  }
}

// Whether silu_of_two is right for all of these. NaN is not below anything.
template <uint32_t kCount>
__device__ bool all_below_87(const float (&x)[kCount]) {
  float even = fabsf(x[0]), odd = fabsf(x[1]);
#pragma unroll
  for (uint32_t i = 2; i < kCount; i += 2) {
    even = max_nan(even, fabsf(x[i]));
    odd = max_nan(odd, fabsf(x[i + 1]));
  }
  return max_nan(even, odd) < f32(kF32EightySeven);
}

// `is_silu`: the activation is SiLU without a factor.
template <uint32_t kCount, typename SiluOf = Silu>
__device__ void activate_lane(bool is_silu, uint32_t activation, float (&x)[kCount],
                              const SiluOf& silu = {}) {
  if (is_silu && all_below_87(x)) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; i += 2) silu_of_two(x[i], x[i + 1]);
  } else {
    activate_by_four(activation, x, silu);
  }
}

}  // namespace nvfp4
