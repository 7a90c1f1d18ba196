// SPDX-License-Identifier: MIT
// Number formats on the host, in integers: the caller's rounding mode and flush-to-zero bits do not
// reach them.
#pragma once

#include <cstdint>

namespace nvfp4 {

// A binary format with subnormals; codes of magnitudes are ordered like their values.
struct Format {
  int mantissa_bits;
  int bias;
  uint32_t overflow_code;  // what a magnitude beyond the largest finite code becomes
  uint32_t nan_code;
};
constexpr Format kE2M1{1, 1, 0x7, 0x7};         // saturates; has no NaN
constexpr Format kE4M3{3, 7, 0x7E, 0x7F};       // saturates at 448
constexpr Format kF16{10, 15, 0x7C00, 0x7FFF};  // overflows to infinity; canonical NaN of PTX
constexpr Format kBF16{7, 127, 0x7F80, 0x7FFF};
constexpr Format kF32{23, 127, 0x7F800000, 0x7FFFFFFF};

constexpr uint8_t kScaleNan = 0x7F;

// The code of significand * 2^exponent, rounded once to nearest, ties to even. significand < 2^63.
uint32_t round_to(const Format& format, uint64_t significand, int exponent);

// An fp32 magnitude as significand * 2^exponent.
struct Unpacked {
  uint32_t sign;  // 0 or 1
  uint32_t significand;
  int exponent;
  bool is_nan, is_infinite;
};
Unpacked unpack(uint32_t f32_bits);

uint32_t f32_bits(float value);
float f32_from_bits(uint32_t bits);

// The same number: a cast may flush a subnormal one to zero.
double f64_from_f32(float value);

// fp32 product, one rounding to nearest even, subnormals kept, canonical NaN.
uint32_t f32_multiply(uint32_t a_bits, uint32_t b_bits);

// Code of an fp32 value with its sign, which is the bit above the magnitude. NaN gives nan_code.
uint32_t convert(const Format& to, uint32_t f32_bits);
uint16_t f16_from_f32(uint32_t f32_bits);

// The fp32 value of a code of kF16, kBF16 or kF32, with its sign. NaN gives fp32's canonical one.
uint32_t widen(const Format& from, uint32_t code);

// E2M1 magnitudes are multiples of 1/2: twice the value of a 4-bit code, with its sign.
int e2m1_doubled(uint32_t code);

// UE4M3 scales are multiples of 2^-9: the value of a byte in that unit, at most 448 * 512. Bit 7 is
// ignored. The NaN code has no value; it gives 0 here and callers ask for it by is_nan_scale.
int32_t ue4m3_units(uint32_t byte);
inline bool is_nan_scale(uint32_t byte) { return (byte & 0x7F) == kScaleNan; }

}  // namespace nvfp4
