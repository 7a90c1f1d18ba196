// SPDX-License-Identifier: MIT
// mma.sync, the tensor core of compute capability 8.0 and later: one wrapper per PTX instruction
// (PTX ISA 9.7.14.5). All lanes of a warp together.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32    d, a, b, d;                PTX 7.0, sm_80
// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32  d, a, b, d;                PTX 7.0, sm_80
// D += A*B. Lane 4g+c holds of A rows g (a[0], a[2]) and g+8 (a[1], a[3]), columns 2c, 2c+1 (a[0],
// a[1]) and 2c+8, 2c+9; of B's column g the same places of K, b[0] and b[1]; of D rows g (d[0],
// d[1]) and g+8, columns 2c and 2c+1.
#define NVFP4_MMA(type)                                                                        \
  __device__ inline void mma_m16n8k16_##type(float(&d)[4], const uint32_t(&a)[4], uint32_t b0, \
                                             uint32_t b1) {                                    \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type                      \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));              \
  }
NVFP4_MMA(f16)
NVFP4_MMA(bf16)
#undef NVFP4_MMA

}  // namespace nvfp4::ptx
