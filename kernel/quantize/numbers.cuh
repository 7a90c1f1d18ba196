// SPDX-License-Identifier: MIT
// Numbers of the quantizer: sixteen elements of any type as fp32, a scale as UE4M3, elements as E2M1.
// Every operation is rounded to nearest even; the bits are those of nvfp4_quantize_host.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kBlock = 16;  // elements of one scale
constexpr uint32_t kScaleNan = 0x7F;
constexpr uint32_t kF32Infinity = 0x7F800000;

// Element types of x: how many bytes, and their value in fp32, which is exact.
struct F16 {
  static constexpr uint32_t kBytes = 2;
  static __device__ float value(uint32_t bits) {
    float f;
    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(f) : "r"(bits));
    return f;
  }
  static __device__ uint32_t round(float f) {
    uint32_t bits;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(bits) : "f"(f));
    return bits;
  }
};
struct Bf16 {
  static constexpr uint32_t kBytes = 2;
  static __device__ float value(uint32_t bits) { return __uint_as_float(bits << 16); }
  static __device__ uint32_t round(float f) {
    uint32_t bits;
    asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(bits) : "f"(f));
    return bits;
  }
};
struct F32 {
  static constexpr uint32_t kBytes = 4;
  static __device__ float value(uint32_t bits) { return __uint_as_float(bits); }
  static __device__ uint32_t round(float f) { return __float_as_uint(f); }
};

__device__ inline uint32_t magnitude_bits(float f) { return __float_as_uint(f) & 0x7FFFFFFF; }

// cvt.rn.satfinite.e4m3x2.f32  d, a, b;                                           PTX 8.1, sm_89
// Of a magnitude: 448 where it is larger. NaN gives 0x7F.
__device__ inline uint32_t e4m3_code(float f) {
  uint32_t code;
  asm("{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, %1, %2; cvt.u32.u16 %0, h; }"
      : "=r"(code)
      : "f"(0.0f), "f"(f));
  return code;
}

// cvt.rn.f16x2.e4m3x2  d, a;                                                      PTX 8.1, sm_89
// The value of a code without a sign, exact.
__device__ inline float e4m3_value(uint32_t code) {
  float f;
  asm("{ .reg .b16 h, l, u; .reg .b32 w;\n\t"
      "cvt.u16.u32 h, %1;\n\t"
      "cvt.rn.f16x2.e4m3x2 w, h;\n\t"
      "mov.b32 {l, u}, w;\n\t"
      "cvt.f32.f16 %0, l; }"
      : "=f"(f)
      : "r"(code));
  return f;
}

// The E2M1 code of a number that is no NaN, ties to even, 6 where it is larger. Below 1 elements are
// 1/2 apart, as floats are between 2^22 and 2^23; from there on the code is the fp32's exponent and
// first bit of its fraction, rounded where they end.
__device__ inline uint32_t e2m1_code(float f) {
  const uint32_t bits = magnitude_bits(f);
  const uint32_t small = __float_as_uint(__fadd_rn(__uint_as_float(bits), 0x1p22f)) & 3;
  const uint32_t rounded = (bits + 0x1FFFFF + (bits >> 22 & 1)) >> 22;
  constexpr uint32_t kOne = 0x3F800000, kOneRounded = kOne >> 22, kOneCode = 2;
  const uint32_t large = min(rounded - (kOneRounded - kOneCode), 7u);
  return (bits < kOne ? small : large) | __float_as_uint(f) >> 31 << 3;
}

// Twice the magnitude of a code: 0, 1, 2, 3, 4, 6, 8, 12, half a byte each.
__device__ inline float e2m1_value(uint32_t code) {
  const uint32_t doubled = static_cast<uint32_t>(0xC8643210u >> (code & 7) * 4) & 15;
  const float magnitude = static_cast<float>(doubled) * 0.5f;
  return (code & 8) != 0 ? -magnitude : magnitude;
}

}  // namespace nvfp4
