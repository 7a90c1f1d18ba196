// SPDX-License-Identifier: MIT
// The number formats from their definition, for tests and tools. Independent of host/formats and of
// the emulator on purpose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace support {

// E2M1: sign, two exponent bits of bias 1, one mantissa bit; exponent 0 is subnormal. Times two it
// is an integer.
inline int e2m1_twice(uint8_t code) {
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const int twice = exponent == 0 ? mantissa : (2 + mantissa) << (exponent - 1);
  return code & 8 ? -twice : twice;
}
inline double e2m1_value(uint8_t code) { return e2m1_twice(code) / 2.0; }

// UE4M3: four exponent bits of bias 7, three mantissa bits, no infinity; 0x7F is NaN. Bit 7 is
// ignored.
inline double e4m3_value(uint8_t byte) {
  if ((byte & 0x7F) == 0x7F) return std::numeric_limits<double>::quiet_NaN();
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}

// The largest power of two that divides a finite UE4M3 value; 0 for 0.
inline double e4m3_lowest_bit(uint8_t byte) {
  const int64_t units = int64_t(std::ldexp(e4m3_value(byte), 9));  // the smallest value is 2^-9
  return std::ldexp(double(units & -units), -9);
}

// UE8M0: a power of two, no zero; 0xFF is NaN.
inline double ue8m0_value(uint8_t byte) {
  return byte == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, byte - 127);
}

// IEEE binary16.
inline double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  }
  return bits & 0x8000 ? -value : value;
}

// The fp16 nearest to a value within its range, ties away from zero.
inline uint16_t f16_bits(double value) {
  const double size = std::fabs(value);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto units = uint32_t(std::lround(std::ldexp(size, 10 - exponent)));  // 1024 and on: normal
  return uint16_t((value < 0 ? 0x8000 : 0) | (uint32_t(exponent + 14) * 1024 + units));
}

// bfloat16: the upper half of an fp32.
inline double bf16_value(uint16_t bits) {
  const int exponent = bits >> 7 & 255, mantissa = bits & 127;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -133) : std::ldexp(128 + mantissa, exponent - 134);
  if (exponent == 255) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  }
  return bits & 0x8000 ? -value : value;
}

// The bf16 nearest to a value within its range, ties away from zero.
inline uint16_t bf16_bits(double value) {
  const double size = std::fabs(value);
  const int exponent = size < 0x1p-126 ? -126 : std::ilogb(size);
  const auto units = uint32_t(std::lround(std::ldexp(size, 7 - exponent)));
  return uint16_t((value < 0 ? 0x8000 : 0) | (uint32_t(exponent + 126) * 128 + units));
}

// Half the distance of neighbours in binary16 around `value`: what one rounding to nearest can add.
inline double f16_half_ulp(double value) {
  const int exponent = value == 0 ? -14 : std::max(std::ilogb(value), -14);
  return std::ldexp(1.0, exponent - 11);
}

}  // namespace support
