// SPDX-License-Identifier: MIT
// mma.sync with block scales, the tensor core of compute capability 12.x: one wrapper per PTX
// instruction (PTX ISA 9.7.14.5). All lanes of a warp together.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32
//     .ue4m3  d, a, b, d, sfa, {0, 0}, sfb, {0, 0};                              PTX 8.7, sm_120a
// D += (A * sfa) * (B * sfb), a fused sum of 64 products and D. Lane 4 g + c holds, of A, the bytes
// 4 c .. 4 c + 3 (a[0], a[1]) and 16 more (a[2], a[3]) of the 32 of rows g (a[0], a[2]) and g + 8;
// of B the same bytes of column g, b0 and b1; of D rows g (d[0], d[1]) and g + 8, columns 2 c and
// 2 c + 1. The four scales of a row of A come from lane 4 g + 0 (row g) or 4 g + 1 (row g + 8),
// those of column g of B from lane 4 g. What other lanes have there is ignored.
__device__ inline void mma_m16n8k64_nvf4(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1, uint32_t sfa, uint32_t sfb) {
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
      ".f32.e2m1.e2m1.f32.ue4m3 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "%10, {0, 0}, %11, {0, 0};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(sfa), "r"(sfb));
}

}  // namespace nvfp4::ptx
