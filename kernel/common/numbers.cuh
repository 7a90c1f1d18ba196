// SPDX-License-Identifier: MIT
// Numbers of the quantizer: elements of any type as fp32, a scale as UE4M3, quotients as E2M1.
// Every operation is rounded once, to nearest even unless its name says otherwise.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kBlock = 16;  // elements of one scale
constexpr uint32_t kScaleNan = 0x7F;
constexpr uint32_t kF32Infinity = 0x7F800000;
constexpr uint32_t kSign = 0x80000000;

__device__ inline uint32_t magnitude_bits(float f) { return __float_as_uint(f) & ~kSign; }

// Element types of x: bytes, elements per 32-bit word, and element i of such a word in fp32, which
// is exact.
struct F16 {
  static constexpr uint32_t kBytes = 2, kPerWord = 2, kInfinity = 0x7C00;
  static __device__ float value(uint32_t word, uint32_t i) {
    float f;
    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(f) : "r"(word >> 16 * i));
    return f;
  }
  static __device__ uint32_t round(float f) {
    uint32_t bits;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(bits) : "f"(f));
    return bits;
  }
};
struct Bf16 {
  static constexpr uint32_t kBytes = 2, kPerWord = 2, kInfinity = 0x7F80;
  static __device__ float value(uint32_t word, uint32_t i) {
    return __uint_as_float(i == 0 ? word << 16 : word & 0xFFFF0000);
  }
  static __device__ uint32_t round(float f) {
    uint32_t bits;
    asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(bits) : "f"(f));
    return bits;
  }
};
struct F32 {
  static constexpr uint32_t kBytes = 4, kPerWord = 1;
  static __device__ float value(uint32_t word, uint32_t) { return __uint_as_float(word); }
  static __device__ uint32_t round(float f) { return __float_as_uint(f); }
};

// max.NaN.f32  d, a, b;                                                           PTX 7.0, sm_80
// NaN if one of them is NaN.
__device__ inline float max_nan(float a, float b) {
  float d;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

// max.u16x2  d, a, b;                                                             PTX 8.0, sm_90
__device__ inline uint32_t max_u16x2(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
  uint32_t d;
  asm("max.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
#else
  return max(a & 0xFFFF, b & 0xFFFF) | max(a >> 16, b >> 16) << 16;
#endif
}

#if __CUDA_ARCH__ >= 900

// cvt.rn.satfinite.e4m3x2.f32  d, a, b;                                           PTX 8.1, sm_89
// For a magnitude: 448 if it is larger. NaN gives 0x7F.
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

#else

// The same by arithmetic. From 2^-6 on a code is the exponent and three bits of the significand,
// which move down by 20 bits. Below that it is the multiple of 2^-9, which is the last bit of a sum
// with 2^14.
__device__ inline uint32_t e4m3_code(float f) {
  constexpr uint32_t kSmallest = 0x3C800000, kBias = (127 - 7) << 3, kLargest = 0x7E;
  const uint32_t bits = __float_as_uint(f);
  if (f != f) return kScaleNan;
  if (bits < kSmallest) return __float_as_uint(__fadd_rn(f, 0x1p14f)) - __float_as_uint(0x1p14f);
  return min(((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - kBias, kLargest);
}
__device__ inline float e4m3_value(uint32_t code) {
  return __fmul_rn(__uint_as_float(code << 20), 0x1p120f);
}

#endif

// Twice the magnitude of a code: 0, 1, 2, 3, 4, 6, 8, 12, half a byte each.
__device__ inline float e2m1_value(uint32_t code) {
  const uint32_t doubled = static_cast<uint32_t>(0xC8643210u >> (code & 7) * 4) & 15;
  const float magnitude = static_cast<float>(doubled) * 0.5f;
  return (code & 8) != 0 ? -magnitude : magnitude;
}

}  // namespace nvfp4
