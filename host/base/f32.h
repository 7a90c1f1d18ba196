// SPDX-License-Identifier: MIT
// fp32 arithmetic in integers: IEEE 754, each operation rounded once to nearest even, subnormals
// kept, one NaN. The caller's rounding mode and flush-to-zero bits do not reach it, and the C
// library's fmaf is not called.
#pragma once

#include "host/base/formats.h"

namespace nvfp4 {

struct F32 {
  uint32_t bits;

  bool is_nan() const { return (bits & 0x7FFFFFFF) > kF32.overflow_code; }
  // True below 0; false for -0 and NaN.
  bool is_negative() const { return bits > 0x80000000 && !is_nan(); }
  // True above 0; false for NaN.
  bool is_positive() const { return bits != 0 && bits <= kF32.overflow_code; }
};

constexpr F32 kNan{0x7FFFFFFF};

constexpr F32 operator-(F32 a) { return {a.bits ^ 0x80000000}; }
constexpr F32 absolute(F32 a) { return {a.bits & 0x7FFFFFFF}; }
// The smaller of two values that are neither negative nor NaN.
constexpr F32 smaller_magnitude(F32 a, F32 b) { return a.bits < b.bits ? a : b; }

F32 fma(F32 a, F32 b, F32 c);  // a * b + c, rounded once
F32 operator/(F32 a, F32 b);
F32 square_root(F32 a);
inline F32 operator*(F32 a, F32 b) { return {f32_multiply(a.bits, b.bits)}; }
inline F32 operator+(F32 a, F32 b) { return fma(a, F32{0x3F800000}, b); }
inline F32 operator-(F32 a, F32 b) { return a + -b; }

// The nearest integer (ties to even) of a value below 2^22 in magnitude.
int32_t nearest_integer(F32 a);
F32 f32_from_integer(int32_t value);

}  // namespace nvfp4
