// SPDX-License-Identifier: MIT
#include "host/base/formats.h"

#include <cstring>

namespace nvfp4 {

namespace {

// Rounds significand * 2^-shift to the nearest integer, ties to even.
uint64_t shift_right_rounded(uint64_t significand, int shift) {
  if (shift >= 64) return 0;  // below half of the last place, since significand < 2^63
  const uint64_t kept = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  const bool up = rest > half || (rest == half && (kept & 1) != 0);
  return kept + up;
}

}  // namespace

uint32_t round_to(const Format& format, uint64_t significand, int exponent) {
  if (significand == 0) return 0;
  const int smallest_normal = 1 - format.bias;
  const int leading = exponent + 63 - __builtin_clzll(significand);
  if (leading > format.bias + 1) return format.overflow_code;  // twice beyond every finite code
  // Below the smallest normal the last place stops moving: gradual underflow.
  const int binade = leading > smallest_normal ? leading : smallest_normal;
  const int shift = binade - format.mantissa_bits - exponent;
  const uint64_t places =
      shift <= 0 ? significand << -shift : shift_right_rounded(significand, shift);
  // The hidden bit of `places` adds one to the exponent field; so does a carry of the rounding.
  const uint64_t code =
      (static_cast<uint64_t>(binade - smallest_normal) << format.mantissa_bits) + places;
  return code < format.overflow_code ? static_cast<uint32_t>(code) : format.overflow_code;
}

Unpacked unpack(uint32_t bits) {
  const uint32_t field = bits >> 23 & 0xFF;
  const uint32_t fraction = bits & 0x7FFFFF;
  Unpacked u{};
  u.sign = bits >> 31;
  u.significand = field == 0 ? fraction : fraction | 0x800000;
  u.exponent = static_cast<int>(field == 0 ? 1 : field) - 150;
  u.is_nan = field == 0xFF && fraction != 0;
  u.is_infinite = field == 0xFF && fraction == 0;
  return u;
}

uint32_t f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double f64_from_f32(float value) {
  const Unpacked u = unpack(f32_bits(value));
  if (u.is_nan || u.is_infinite) return static_cast<double>(value);
  const uint64_t power_bits = static_cast<uint64_t>(u.exponent + 1023) << 52;  // 2^exponent
  double power;
  memcpy(&power, &power_bits, sizeof power);
  const double magnitude = u.significand * power;  // exact, and no subnormal double
  return u.sign != 0 ? -magnitude : magnitude;
}

uint32_t f32_multiply(uint32_t a_bits, uint32_t b_bits) {
  const Unpacked a = unpack(a_bits), b = unpack(b_bits);
  const bool zero_times_infinity =
      (a.is_infinite && b.significand == 0) || (b.is_infinite && a.significand == 0);
  if (a.is_nan || b.is_nan || zero_times_infinity) return kF32.nan_code;
  const uint32_t sign = (a.sign ^ b.sign) << 31;
  if (a.is_infinite || b.is_infinite) return sign | kF32.overflow_code;
  const uint64_t product = static_cast<uint64_t>(a.significand) * b.significand;
  return sign | round_to(kF32, product, a.exponent + b.exponent);
}

uint32_t convert(const Format& to, uint32_t f32_bits) {
  const Unpacked u = unpack(f32_bits);
  if (u.is_nan) return to.nan_code;
  const uint32_t magnitude =
      u.is_infinite ? to.overflow_code : round_to(to, u.significand, u.exponent);
  // The sign bit is the first one that no magnitude has.
  const uint32_t sign_bit = uint32_t{1} << (32 - __builtin_clz(to.nan_code));
  return magnitude | (u.sign != 0 ? sign_bit : 0);
}

uint16_t f16_from_f32(uint32_t f32_bits) { return static_cast<uint16_t>(convert(kF16, f32_bits)); }

uint32_t widen(const Format& from, uint32_t code) {
  const uint32_t sign_bit = uint32_t{1} << (32 - __builtin_clz(from.nan_code));
  const uint32_t magnitude = code & (sign_bit - 1);
  const uint32_t sign = (code & sign_bit) != 0 ? 0x80000000 : 0;
  if (magnitude > from.overflow_code) return kF32.nan_code;
  if (magnitude == from.overflow_code) return sign | kF32.overflow_code;
  const uint32_t field = magnitude >> from.mantissa_bits;
  const uint32_t hidden = uint32_t{field != 0} << from.mantissa_bits;
  const uint32_t fraction = magnitude & ((uint32_t{1} << from.mantissa_bits) - 1);
  const int exponent = static_cast<int>(field != 0 ? field : 1) - from.bias - from.mantissa_bits;
  return sign | round_to(kF32, hidden | fraction, exponent);
}

int e2m1_doubled(uint32_t code) {
  constexpr int8_t magnitude[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  return (code & 8) != 0 ? -magnitude[code & 7] : magnitude[code & 7];
}

int32_t ue4m3_units(uint32_t byte) {
  if (is_nan_scale(byte)) return 0;
  const int32_t field = static_cast<int32_t>(byte >> 3 & 0xF);
  const int32_t fraction = static_cast<int32_t>(byte & 7);
  // 2^(field - 7) * (1 + fraction / 8) = (8 + fraction) * 2^(field - 1) * 2^-9
  return field == 0 ? fraction : (8 + fraction) << (field - 1);
}

}  // namespace nvfp4
