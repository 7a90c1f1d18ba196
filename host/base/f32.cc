// SPDX-License-Identifier: MIT
#include "host/base/f32.h"

namespace nvfp4 {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint32_t kSign = 0x80000000;

// A finite number other than 0: significand * 2^exponent, with a sign.
struct Term {
  bool negative;
  Wide significand;
  int exponent;
};

// Shortens to 62 bits. The last bit is odd if any bit was lost, so the result rounds like the whole
// number.
uint64_t jam(Wide significand, int* exponent) {
  const uint64_t high = static_cast<uint64_t>(significand >> 64);
  const int bits = high != 0 ? 128 - __builtin_clzll(high)
                             : 64 - __builtin_clzll(static_cast<uint64_t>(significand));
  if (bits <= 62) return static_cast<uint64_t>(significand);
  const int shift = bits - 62;
  *exponent += shift;
  const bool rest = (significand & ((Wide{1} << shift) - 1)) != 0;
  return static_cast<uint64_t>(significand >> shift) | rest;
}

// Brings both terms to the exponent of the lower one. A term that is more than kApart bits below
// the last bit of the other affects rounding only by not being 0, so it becomes one unit.
constexpr int kApart = 72;
void align(Term* high, Term* low) {
  int shift = high->exponent - low->exponent;
  if (shift > kApart) {
    low->significand = 1;
    shift = kApart;
  }
  high->significand <<= shift;
  high->exponent -= shift;
  low->exponent = high->exponent;
}

F32 sum(Term a, Term b) {
  if (a.exponent >= b.exponent) {
    align(&a, &b);
  } else {
    align(&b, &a);
  }
  Term result = a;
  if (a.negative == b.negative) {
    result.significand += b.significand;
  } else if (a.significand >= b.significand) {
    result.significand -= b.significand;
  } else {
    result.significand = b.significand - a.significand;
    result.negative = b.negative;
  }
  if (result.significand == 0) return {0};  // an exact difference of 0 is +0
  const uint64_t significand = jam(result.significand, &result.exponent);
  return {round_to(kF32, significand, result.exponent) | (result.negative ? kSign : 0)};
}

}  // namespace

F32 fma(F32 a_f32, F32 b_f32, F32 c_f32) {
  const Unpacked a = unpack(a_f32.bits), b = unpack(b_f32.bits), c = unpack(c_f32.bits);
  const bool negative = (a.sign ^ b.sign) != 0;
  const uint32_t sign = negative ? kSign : 0;
  if (a.is_nan || b.is_nan || c.is_nan) return kNan;
  if (a.is_infinite || b.is_infinite) {
    const bool by_zero = (a.is_infinite ? b : a).significand == 0;
    const bool opposite = c.is_infinite && (c.sign != 0) != negative;
    return by_zero || opposite ? kNan : F32{sign | kF32.overflow_code};
  }
  if (c.is_infinite) return c_f32;
  const uint64_t product = static_cast<uint64_t>(a.significand) * b.significand;
  const int exponent = a.exponent + b.exponent;
  if (product == 0 && c.significand == 0) return {sign & c_f32.bits};  // -0 only if both are -0
  if (product == 0) return c_f32;
  if (c.significand == 0) return {sign | round_to(kF32, product, exponent)};
  return sum({negative, product, exponent}, {c.sign != 0, c.significand, c.exponent});
}

F32 operator/(F32 a_f32, F32 b_f32) {
  Unpacked a = unpack(a_f32.bits), b = unpack(b_f32.bits);
  const uint32_t sign = (a.sign ^ b.sign) << 31;
  const bool zeros = a.significand == 0 && b.significand == 0;
  if (a.is_nan || b.is_nan || (a.is_infinite && b.is_infinite) || zeros) return kNan;
  if (a.is_infinite || b.significand == 0) return {sign | kF32.overflow_code};
  if (b.is_infinite || a.significand == 0) return {sign};
  constexpr int kPlaces = 38;  // places of the quotient of two significands of 24 bits
  const int shift = __builtin_clz(a.significand) - 8;
  const uint64_t dividend = static_cast<uint64_t>(a.significand) << (shift + kPlaces);
  const uint64_t quotient = dividend / b.significand;
  const bool rest = dividend % b.significand != 0;
  const int exponent = a.exponent - shift - b.exponent - kPlaces;
  return {sign | round_to(kF32, quotient | rest, exponent)};
}

F32 square_root(F32 a_f32) {
  const Unpacked a = unpack(a_f32.bits);
  if (a.is_nan) return kNan;
  if (a.significand == 0) return a_f32;
  if (a.sign != 0) return kNan;
  if (a.is_infinite) return a_f32;
  // Scales to 61 or 62 bits and an even exponent. The root has 31 bits; the remainder affects
  // rounding only by not being 0.
  int shift = __builtin_clz(a.significand) + 30;
  shift -= (a.exponent - shift) & 1;
  const uint64_t square = static_cast<uint64_t>(a.significand) << shift;
  uint64_t root = 0;
  for (uint64_t bit = uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root | bit) * (root | bit) <= square) root |= bit;
  }
  const uint64_t rest = root * root != square;
  return {round_to(kF32, root << 1 | rest, (a.exponent - shift) / 2 - 1)};
}

int32_t nearest_integer(F32 a) {
  const F32 magic{0x4B400000};  // 1.5 * 2^23: a sum with it has no fraction
  return static_cast<int32_t>((a + magic).bits - magic.bits);
}

F32 f32_from_integer(int32_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? -int64_t{value} : int64_t{value});
  return {round_to(kF32, magnitude, 0) | (value < 0 ? kSign : 0)};
}

}  // namespace nvfp4
