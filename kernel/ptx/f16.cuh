// SPDX-License-Identifier: MIT
// Half precision in pairs: one wrapper per PTX instruction (PTX ISA 9.7.4, 9.7.9.21).
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

// mul.rn.f16x2  d, a, {b.half, b.half};                                           PTX 4.2
// Both halves of a by one of b: 0 the low one, 1 the high one. SASS selects it in the operand.
template <uint32_t kHalf>
__device__ inline uint32_t mul_rn_f16x2_by_half(uint32_t a, uint32_t b) {
  uint32_t d;
  if constexpr (kHalf == 0) {
    asm("{ .reg .b16 low, high; .reg .b32 twice;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "mov.b32 twice, {low, low};\n\t"
        "mul.rn.f16x2 %0, %1, twice; }"
        : "=r"(d)
        : "r"(a), "r"(b));
  } else {
    asm("{ .reg .b16 low, high; .reg .b32 twice;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "mov.b32 twice, {high, high};\n\t"
        "mul.rn.f16x2 %0, %1, twice; }"
        : "=r"(d)
        : "r"(a), "r"(b));
  }
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

// stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16  [a], {r0, r1, r2, r3};     PTX 7.8, sm_90
// Four matrices of 8x8 halves, of which lane 4 i + c holds row i, columns 2 c and 2 c + 1,
// transposed: column j of matrix x goes to the 16 bytes at lane 8 x + j's address.
__device__ inline void stmatrix_x4_trans(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

// stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16  [a], {r0, r1};             PTX 7.8, sm_90
// Two matrices; the addresses are those of lanes 0 to 15.
__device__ inline void stmatrix_x2_trans(uint32_t address, const uint32_t (&r)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(r[0]), "r"(r[1])
               : "memory");
}

// cvt.rn.f16x2.f32  d, a, b;                                                      PTX 7.0, sm_80
// a to the upper half, b to the lower. Nearest even; overflow gives infinity, subnormal results are
// kept.
__device__ inline uint32_t cvt_rn_f16x2_f32(float a, float b) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
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
