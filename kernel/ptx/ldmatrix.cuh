// SPDX-License-Identifier: MIT
// Matrices of shared memory as fragments of mma.sync: one wrapper per PTX instruction (PTX ISA
// 9.7.14.5.15). All lanes of a warp together.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16  {r0, r1, r2, r3}, [a];           PTX 7.8, sm_75
// Four matrices of 8 rows of 16 bytes. Lane 8 x + r has the address of row r of matrix x. Lane
// 4 g + c gets the word c of row g of each.
__device__ inline void ldmatrix_x4(uint32_t address, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16  {r0, r1, r2, r3}, [a];     PTX 7.8, sm_75
// The same transposed: lane 4 g + c gets column g of the rows 2 c and 2 c + 1 of each.
__device__ inline void ldmatrix_x4_trans(uint32_t address, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16  {r0, r1}, [a];                   PTX 7.8, sm_75
// Two matrices; the addresses are those of lanes 0 to 15.
__device__ inline void ldmatrix_x2(uint32_t address, uint32_t (&r)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(address)
               : "memory");
}

}  // namespace nvfp4::ptx
