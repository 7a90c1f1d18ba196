// SPDX-License-Identifier: MIT
// The common case of fp32 in 64-bit integers: normal numbers, rounded to nearest, normal results.
// Everything else is left to softfloat.cc, which this agrees with bit by bit.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

namespace emu::soft {

struct Normal32 {
  uint64_t significand;  // 24 bits
  int exponent;          // field
  bool negative;
  explicit Normal32(uint64_t code)
      : significand((code & 0x7FFFFF) | 0x800000),
        exponent(int(code >> 23 & 0xFF)),
        negative(code >> 31 & 1) {}
};

inline bool is_normal32(uint64_t code) { return (code >> 23 & 0xFF) - 1 < 254; }

// significand * 2^exponent, significand > 0 and below 2^63; false: not a normal number.
inline bool round32(uint64_t significand, int exponent, bool negative, uint64_t* result) {
  const int top = 63 - std::countl_zero(significand), field = exponent + top + 127;
  if (field < 1 || field > 254) return false;
  uint64_t kept;
  if (const int down = top - 23; down > 0) {
    kept = significand >> down;
    const uint64_t rest = significand & ((1ull << down) - 1), half = 1ull << (down - 1);
    kept += rest > half || (rest == half && (kept & 1));
  } else {
    kept = significand << -down;
  }
  const uint64_t code = (uint64_t(field - 1) << 23) + kept;  // a carry adds one to the exponent
  if (code >= 0x7F800000) return false;
  *result = code | uint64_t(negative) << 31;
  return true;
}

inline bool mul32(uint64_t a, uint64_t b, uint64_t* result) {
  if (!is_normal32(a) || !is_normal32(b)) return false;
  const Normal32 x(a), y(b);
  return round32(x.significand * y.significand, x.exponent + y.exponent - 300,
                 x.negative != y.negative, result);
}

// a * b + c. Product and addend are moved up to the same height, bits 60 and 61; of the smaller
// one, what falls below bit 0 is kept there as one bit. Where leading bits can cancel, none falls:
// the product has 14 zeros at its end, the addend 38.
inline bool fma32(uint64_t a, uint64_t b, uint64_t c, uint64_t* result) {
  if (!is_normal32(a) || !is_normal32(b) || !is_normal32(c)) return false;
  const Normal32 x(a), y(b), z(c);
  uint64_t p = x.significand * y.significand << 14, q = z.significand << 38;
  int p_exponent = x.exponent + y.exponent - 314, q_exponent = z.exponent - 188;
  bool p_negative = x.negative != y.negative, q_negative = z.negative;
  if (p_exponent < q_exponent) {
    std::swap(p, q);
    std::swap(p_exponent, q_exponent);
    std::swap(p_negative, q_negative);
  }
  const int down = p_exponent - q_exponent;
  q = down > 62 ? 1 : q >> down | ((q & ((1ull << down) - 1)) != 0);
  if (p_negative == q_negative) return round32(p + q, p_exponent, p_negative, result);
  if (p == q) return *result = 0, true;
  return p > q ? round32(p - q, p_exponent, p_negative, result)
               : round32(q - p, p_exponent, q_negative, result);
}

}  // namespace emu::soft
