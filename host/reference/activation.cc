// SPDX-License-Identifier: MIT
// The formulas of docs/numerics.md, "Activations", with its names. Constants are bit patterns, so
// that nothing depends on how a compiler converts decimals.
#include "host/reference/activation.h"

#include "nvfp4_gemm.h"

namespace nvfp4 {

namespace {

constexpr F32 kOne{0x3F800000};
constexpr F32 kTwoTo64{0x5F800000}, kTwoToMinus64{0x1F800000};

// 2^(w + w_low) = p * s * 2^-64. The last factor is separate so that s stays normal down to 2^-190
// and a subnormal result is rounded once.
struct Power {
  F32 p, s;
};
Power power_of_two(F32 w, F32 w_low) {
  const int32_t n = nearest_integer(w);
  const F32 f = (w - f32_from_integer(n)) + w_low;
  constexpr F32 kPolynomial[] = {{0x3AAF9F2A}, {0x3C1D96A6}, {0x3D635774},
                                 {0x3E75FDEE}, {0x3F317218}, kOne};
  F32 p{0x3920FDDD};
  for (const F32 c : kPolynomial) p = fma(p, f, c);
  return {p, {kTwoTo64.bits + (static_cast<uint32_t>(n) << 23)}};
}

// x / (1 + 2^-(w + w_low)) for x > 0, and x * 2^(..) / (1 + 2^(..)) for x < 0. Magnitudes that are
// large enough to give 0 are clamped to a.
F32 times_sigmoid(F32 x, F32 a, Power e) {
  const F32 d = fma(e.p * e.s, kTwoToMinus64, kOne);
  if (!x.is_negative()) return x / d;
  return ((-a * e.p) / d * e.s) * kTwoToMinus64;
}

// x / (1 + exp(-alpha * x)). With alpha >= 2^-6 the result for -2^14 is -0, like that for -128 with
// alpha = 1. The rounding error of alpha * a goes into w_low.
F32 silu(F32 x, F32 alpha) {
  constexpr F32 kLog2E{0x3FB8AA3B}, kLog2ELow{0x32A57060}, kLimit{0x43000000};  // 128
  constexpr F32 kTwoTo14{0x46800000};
  const F32 a = smaller_magnitude(absolute(x), kTwoTo14);
  const F32 u = alpha * a, u_low = fma(alpha, a, -u);
  const F32 v = smaller_magnitude(u, kLimit);
  const F32 w = -v * kLog2E;
  const F32 w_low = fma(-u_low, kLog2E, fma(-v, kLog2ELow, fma(-v, kLog2E, -w)));
  return times_sigmoid(x, a, power_of_two(w, w_low));
}

// 1 + tanh(u) = 2 * sigmoid(2u), and 2u * log2(e) = x * (c1 + c3 * x^2) with 2 * sqrt(2/pi) *
// log2(e) for c1 and that times 0.044715 for c3.
F32 gelu_tanh(F32 x) {
  constexpr F32 kC1{0x40135740}, kC1Low{0x3704379D}, kC3{0x3DD2D3E8}, kC3Low{0xB10A8D57};
  constexpr F32 kLimit{0x41300000};  // 11
  const F32 a = smaller_magnitude(absolute(x), kLimit);
  const F32 square = a * a, square_low = fma(a, a, -square);
  const F32 q = fma(kC3, square, kC1);
  F32 q_low = fma(kC3, square, kC1 - q);
  q_low = fma(kC3Low, square, q_low);
  q_low = fma(kC3, square_low, q_low) + kC1Low;
  const F32 w = -a * q;
  const F32 w_low = fma(-a, q_low, fma(-a, q, -w));
  return times_sigmoid(x, a, power_of_two(w, w_low));
}

// x * Phi(x) with Phi(-a) = exp(-a^2 / 2) * g, where g, half of erfcx(a / sqrt(2)), is a polynomial
// in t = (a - 4) / (a + 4).
F32 gelu_erf(F32 x) {
  constexpr F32 kHalfLog2E{0x3F38AA3B}, kHalfLog2ELow{0x32257060};
  constexpr F32 kLimit{0x41700000}, kFour{0x40800000};  // 15
  const F32 a = smaller_magnitude(absolute(x), kLimit);
  const F32 square = a * a, square_low = fma(a, a, -square);
  const F32 w = -square * kHalfLog2E;
  F32 w_low = fma(-square, kHalfLog2E, -w);
  w_low = fma(-square, kHalfLog2ELow, w_low);
  w_low = fma(-square_low, kHalfLog2E, w_low);
  const Power e = power_of_two(w, w_low);
  const F32 t = (a - kFour) / (a + kFour);
  constexpr F32 kPolynomial[] = {{0xB92E37B9}, {0x3A2C69CD}, {0x3A03723C},
                                 {0xBC0B3B9F}, {0x3CFCDA2C}, {0xBD92DAF7},
                                 {0x3DFEBA83}, {0xBE2E7CBF}, {0x3DC15A5E}};
  F32 g{0xB886D29A};
  for (const F32 c : kPolynomial) g = fma(g, t, c);
  const F32 h = e.p * g;
  if (x.is_negative()) return (-a * h * e.s) * kTwoToMinus64;
  return x * (kOne - (h * e.s) * kTwoToMinus64);
}

}  // namespace

F32 activate(int32_t activation, F32 x, F32 alpha) {
  if (x.is_nan()) return kNan;
  switch (activation) {
    case NVFP4_ACTIVATION_RELU: return x.is_positive() ? x : F32{0};
    case NVFP4_ACTIVATION_GELU_TANH: return gelu_tanh(x);
    case NVFP4_ACTIVATION_SILU: return silu(x, alpha);
    case NVFP4_ACTIVATION_GELU_ERF: return gelu_erf(x);
    case NVFP4_ACTIVATION_RELU_SQUARED: return x.is_positive() ? x * x : F32{0};
  }
  return x;
}

}  // namespace nvfp4
