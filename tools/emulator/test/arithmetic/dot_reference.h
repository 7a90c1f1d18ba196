// SPDX-License-Identifier: MIT
// The published model of the dot products of tcgen05.mma (MMA-Sim, arXiv 2511.10909) in plain
// doubles, one element at a time: independent of the emulator's implementation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace unit {

// A binary format: sign, exponent and mantissa bits from the top; how many low bits do not count.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias, ignored;
  bool infinities;  // the largest exponent means infinity and NaN
  bool one_nan;     // only all ones is NaN
  int smallest() const { return 1 - bias; }
};
constexpr FloatFormat half{5, 10, 15, 0, true, false}, brain{8, 7, 127, 0, true, false},
    tensor{8, 10, 127, 13, true, false}, single{8, 23, 127, 0, true, false},
    e4m3{4, 3, 7, 0, false, true}, e5m2{5, 2, 15, 0, true, false}, e2m3{2, 3, 1, 0, false, false},
    e3m2{3, 2, 3, 0, false, false}, e2m1{2, 1, 1, 0, false, false};

inline double value_of(uint32_t code, const FloatFormat& f) {
  code >>= f.ignored;
  const uint32_t fields = 1u << f.exponent_bits, steps = 1u << f.mantissa_bits;
  const uint32_t mantissa = code % steps, exponent = code / steps % fields;
  const double sign = code / steps / fields % 2 ? -1 : 1;
  if (exponent == fields - 1 && f.infinities)
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  if (exponent == fields - 1 && f.one_nan && mantissa == steps - 1)
    return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, f.smallest() - f.mantissa_bits);
  return sign * std::ldexp(steps + mantissa, int(exponent) - f.bias - f.mantissa_bits);
}

// The model's exponent of a number of a format: a subnormal has the smallest one, a zero -126.
inline int exponent_of(double x, const FloatFormat& f) {
  return x == 0 ? -126 : std::max(std::ilogb(x), f.smallest());
}

struct Dot {
  FloatFormat a, b, d;
  std::vector<double> x, y;
  double c;
  int scale = 0;    // exponents of both scales
  int scale_d = 0;  // C counts as c * 2^-scale_d
  bool raises = true;
  int model_bits = 25;
};

// The code of a number rounded toward zero (fp32) or to nearest even (fp16).
inline uint32_t encode(double v, bool to_half) {
  const FloatFormat& f = to_half ? half : single;
  const uint32_t infinity = to_half ? 0x7C00 : 0x7F800000, sign = to_half ? 0x8000 : 0x80000000;
  if (std::isnan(v)) return to_half ? 0x7FFF : 0x7FFFFFFF;
  if (v == 0) return 0;
  const uint32_t minus = v < 0 ? sign : 0;
  if (std::isinf(v)) return minus | infinity;
  const int e = std::max(std::ilogb(v), f.smallest());
  const double units = std::ldexp(std::fabs(v), f.mantissa_bits - e);
  const double whole = to_half ? std::nearbyint(units) : std::floor(units);
  if (to_half && whole == 0) return 0;  // wgmma's on an H200; tcgen05.mma is taken to do the same
  const double rounded = std::ldexp(whole, e - f.mantissa_bits);
  if (rounded >= (to_half ? 65536.0 : 0x1p128)) return minus | infinity;
  const int top = rounded == 0 ? f.smallest() : std::max(std::ilogb(rounded), f.smallest());
  const uint32_t steps = 1u << f.mantissa_bits;
  const uint32_t mantissa = uint32_t(std::ldexp(rounded, f.mantissa_bits - top));
  return minus |
         (mantissa < steps ? mantissa
                           : (uint32_t(top + f.bias) << f.mantissa_bits) + mantissa - steps);
}

inline uint32_t dot_reference(const Dot& dot) {
  const bool to_half = dot.d.mantissa_bits == half.mantissa_bits;
  double plain = dot.c;
  for (size_t k = 0; k < dot.x.size(); ++k) plain += dot.x[k] * dot.y[k];
  if (std::isnan(plain) || std::isinf(plain)) return encode(plain, to_half);

  std::vector<double> terms{std::ldexp(dot.c, -dot.scale_d)};
  std::vector<int> exponents{exponent_of(dot.c, dot.d) - dot.scale_d};
  for (size_t k = 0; k < dot.x.size(); ++k) {
    const double product = std::ldexp(dot.x[k] * dot.y[k], dot.scale);
    const int e = exponent_of(dot.x[k], dot.a) + exponent_of(dot.y[k], dot.b) + dot.scale;
    terms.push_back(product);
    exponents.push_back(product == 0 && !dot.raises ? -126 : e);
  }
  const int unit = *std::max_element(exponents.begin(), exponents.end()) - dot.model_bits;
  double sum = 0;
  for (const double t : terms) sum += std::trunc(std::ldexp(t, -unit));
  const uint32_t bits = encode(std::ldexp(sum, unit), to_half);
  return to_half ? bits : bits & ~0u << std::max(23 - dot.model_bits, 0);
}

}  // namespace unit
