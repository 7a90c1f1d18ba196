// SPDX-License-Identifier: MIT
// Conversions of small floats, products of fp16 pairs, a reciprocal: one wrapper per PTX
// instruction (PTX ISA 9.7.3, 9.7.4, 9.7.9.21).
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mul.rn.f16x2  d, a, b;                                                          PTX 4.2
// Subnormals are values like others: no .ftz.
__device__ inline uint32_t mul_rn_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// mul.rn.f16x2   d, a, {b.half, b.half};                                          PTX 4.2
// mul.rn.bf16x2  d, a, {b.half, b.half};                                          PTX 7.8, sm_90
// mul_rn_f16x2_by_half, mul_rn_bf16x2_by_half: both halves of a by one of b, 0 the low one, 1 the
// high one. SASS selects it in the operand. Subnormals are kept.
#define NVFP4_MUL_BY_HALF(type)                                                \
  template <uint32_t kHalf>                                                    \
  __device__ inline uint32_t mul_rn_##type##_by_half(uint32_t a, uint32_t b) { \
    uint32_t d;                                                                \
    if constexpr (kHalf == 0) {                                                \
      asm("{ .reg .b16 low, high; .reg .b32 twice;\n\t"                        \
          "mov.b32 {low, high}, %2;\n\t"                                       \
          "mov.b32 twice, {low, low};\n\t"                                     \
          "mul.rn." #type " %0, %1, twice; }"                                  \
          : "=r"(d)                                                            \
          : "r"(a), "r"(b));                                                   \
    } else {                                                                   \
      asm("{ .reg .b16 low, high; .reg .b32 twice;\n\t"                        \
          "mov.b32 {low, high}, %2;\n\t"                                       \
          "mov.b32 twice, {high, high};\n\t"                                   \
          "mul.rn." #type " %0, %1, twice; }"                                  \
          : "=r"(d)                                                            \
          : "r"(a), "r"(b));                                                   \
    }                                                                          \
    return d;                                                                  \
  }
NVFP4_MUL_BY_HALF(f16x2)
NVFP4_MUL_BY_HALF(bf16x2)
#undef NVFP4_MUL_BY_HALF

// fma.rn.bf16x2  d, a, b, -0.0;                                                   PTX 7.0, sm_80
// A product of bf16 pairs where there is no mul.bf16x2 (before 9.0): -0.0 changes no product.
__device__ inline uint32_t fma_rn_bf16x2_product(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000));
  return d;
}

// add.rn.bf16x2  d, a, b;                                                         PTX 7.8, sm_90
__device__ inline uint32_t add_rn_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// cvt.rn.f16x2.e4m3x2  d, a;                                                      PTX 8.1, sm_89
// The low or the high 16 bits of `bytes`: two E4M3 values, exact in fp16.
template <uint32_t kHalf>
__device__ inline uint32_t cvt_rn_f16x2_e4m3x2(uint32_t bytes) {
  uint32_t d;
  if constexpr (kHalf == 0) {
    asm("{ .reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %1;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, low; }"
        : "=r"(d)
        : "r"(bytes));
  } else {
    asm("{ .reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %1;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, high; }"
        : "=r"(d)
        : "r"(bytes));
  }
  return d;
}

// rcp.approx.ftz.f32  d, a;                                                       PTX 1.0
// Within one unit in the last place of 1 / a (PTX ISA 9.7.3.13).
__device__ inline float rcp_approx_ftz_f32(float a) {
  float d;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

// cvt.rn.f16x2.f32  d, a, b;                                                      PTX 7.0, sm_80
// a to the upper half, b to the lower. Nearest even; overflow gives infinity, subnormal results are
// kept.
__device__ inline uint32_t cvt_rn_f16x2_f32(float a, float b) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

// cvt.rn.bf16x2.f32  d, a, b;                                                     PTX 7.0, sm_80
// Likewise to bf16.
__device__ inline uint32_t cvt_rn_bf16x2_f32(float a, float b) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

// cvt.f32.f16  d, a;                                                              PTX 1.0
// The low half, exact.
__device__ inline float cvt_f32_f16(uint32_t a) {
  float d;
  asm("{ .reg .b16 low; cvt.u16.u32 low, %1; cvt.f32.f16 %0, low; }" : "=f"(d) : "r"(a));
  return d;
}

// cvt.f32.f16  d, a;                                                              PTX 1.0
// Both halves, exact.
__device__ inline float2 cvt_f32_f16_pair(uint32_t a) {
  float2 d;
  asm("{ .reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\t"
      "cvt.f32.f16 %1, high; }"
      : "=f"(d.x), "=f"(d.y)
      : "r"(a));
  return d;
}

}  // namespace nvfp4::ptx
