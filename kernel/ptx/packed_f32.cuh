// SPDX-License-Identifier: MIT
// Two fp32 numbers in a register pair, and operations on both at once: PTX ISA 9.7.3, sm_100.
#pragma once

#include <cstdint>

namespace nvfp4 {
namespace ptx {

struct F32x2 {
  uint64_t bits;
};

__device__ inline F32x2 pack(float low, float high) {
  F32x2 d;
  asm("mov.b64 %0, {%1, %2};" : "=l"(d.bits) : "f"(low), "f"(high));
  return d;
}
__device__ inline F32x2 both(float x) { return pack(x, x); }
__device__ inline void unpack(F32x2 a, float& low, float& high) {
  asm("mov.b64 {%0, %1}, %2;" : "=f"(low), "=f"(high) : "l"(a.bits));
}

// fma.rn.f32x2  d, a, b, c;                                                       PTX 8.6, sm_100
__device__ inline F32x2 fma(F32x2 a, F32x2 b, F32x2 c) {
  F32x2 d;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d.bits) : "l"(a.bits), "l"(b.bits), "l"(c.bits));
  return d;
}

// A product and a sum, each rounded once, as an fma that changes no bit of it. mul.rn.f32x2 and
// add.rn.f32x2 are not used: ptxas 13.0 makes one FFMA2 of one after the other, in spite of .rn,
// which rounds once where the epilogue's rule rounds twice.
__device__ inline F32x2 mul(F32x2 a, F32x2 b) { return fma(a, b, both(-0.0f)); }
__device__ inline F32x2 add(F32x2 a, F32x2 b) { return fma(a, both(1.0f), b); }

}  // namespace ptx
}  // namespace nvfp4
