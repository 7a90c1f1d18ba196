// SPDX-License-Identifier: MIT
// The common case of fp32, fp16 and bf16 in 64-bit integers: normal numbers and zeros, rounded to
// nearest, normal results. Everything else is left to softfloat.cc, which this agrees with bit by
// bit.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "tools/emulator/arithmetic/softfloat.h"

namespace emu::soft {

template <const Format& F>
struct NormalOf {
  static constexpr int mantissa = F.mantissa_bits, bias = F.bias();
  static constexpr uint64_t most_field = (1ull << F.exponent_bits) - 2;  // of a normal number
  static constexpr uint64_t one = uint64_t(bias) << mantissa;

  uint64_t significand;  // mantissa + 1 bits
  int exponent;          // field
  bool negative;
  explicit NormalOf(uint64_t code)
      : significand((code & ((1ull << mantissa) - 1)) | 1ull << mantissa),
        exponent(int(code >> mantissa & (most_field + 1))),
        negative(code & F.sign_bit()) {}

  static bool is_normal(uint64_t code) {
    return (code >> mantissa & (most_field + 1)) - 1 < most_field;
  }
  static bool is_zero(uint64_t code) { return (code & (F.sign_bit() - 1)) == 0; }

  // significand * 2^exponent, significand > 0 and below 2^63; false: not a normal number.
  static bool round(uint64_t significand, int exponent, bool negative, uint64_t* result) {
    const int top = 63 - std::countl_zero(significand), field = exponent + top + bias;
    if (field < 1 || field > int(most_field)) return false;
    uint64_t kept;
    if (const int down = top - mantissa; down > 0) {
      kept = significand >> down;
      const uint64_t rest = significand & ((1ull << down) - 1), half = 1ull << (down - 1);
      kept += rest > half || (rest == half && (kept & 1));
    } else {
      kept = significand << -down;
    }
    // A carry adds one to the exponent.
    const uint64_t code = (uint64_t(field - 1) << mantissa) + kept;
    if (code >= F.infinity()) return false;
    *result = code | (negative ? F.sign_bit() : 0);
    return true;
  }

  static bool mul(uint64_t a, uint64_t b, uint64_t* result) {
    const bool zero_a = is_zero(a), zero_b = is_zero(b);
    if (!(zero_a || is_normal(a)) || !(zero_b || is_normal(b))) return false;
    if (zero_a || zero_b) return *result = (a ^ b) & F.sign_bit(), true;
    const NormalOf x(a), y(b);
    return round(x.significand * y.significand, x.exponent + y.exponent - 2 * (bias + mantissa),
                 x.negative != y.negative, result);
  }

  // a * b + c. Product and addend are moved up to the same height, bits 60 and 61. The bits of the
  // smaller one that fall below bit 0 are kept there as one bit. Where leading bits can cancel, no
  // bit falls below: the product ends in at least 14 zeros, the addend in 38.
  static bool fma(uint64_t a, uint64_t b, uint64_t c, uint64_t* result) {
    if (!is_normal(a) || !is_normal(b)) return false;
    if (is_zero(c)) return mul(a, b, result);
    if (!is_normal(c)) return false;
    constexpr int up = 60 - 2 * mantissa;
    const NormalOf x(a), y(b), z(c);
    uint64_t p = x.significand * y.significand << up, q = z.significand << (61 - mantissa);
    int p_exponent = x.exponent + y.exponent - 2 * (bias + mantissa) - up,
        q_exponent = z.exponent - bias - 61;
    bool p_negative = x.negative != y.negative, q_negative = z.negative;
    if (p_exponent < q_exponent) {
      std::swap(p, q);
      std::swap(p_exponent, q_exponent);
      std::swap(p_negative, q_negative);
    }
    const int down = p_exponent - q_exponent;
    q = down > 62 ? 1 : q >> down | ((q & ((1ull << down) - 1)) != 0);
    if (p_negative == q_negative) return round(p + q, p_exponent, p_negative, result);
    if (p == q) return *result = 0, true;
    return p > q ? round(p - q, p_exponent, p_negative, result)
                 : round(q - p, p_exponent, q_negative, result);
  }
};

}  // namespace emu::soft
