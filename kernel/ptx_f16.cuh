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

// cvt.rn.f16x2.e4m3x2  d, a;                                                      PTX 8.1, sm_89
// The low 16 bits of `bytes`: two E4M3 values, exact in fp16.
__device__ inline uint32_t cvt_rn_f16x2_e4m3x2(uint32_t bytes) {
  uint32_t d;
  asm("{ .reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %1;\n\t"
      "cvt.rn.f16x2.e4m3x2 %0, low; }"
      : "=r"(d)
      : "r"(bytes));
  return d;
}

}  // namespace nvfp4::ptx
