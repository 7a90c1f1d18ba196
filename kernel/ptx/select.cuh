// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// lop3.b32  d, mask, a, b, 0xCA;                                                  PTX 4.3, sm_50
// The bits of a where the mask has ones, those of b elsewhere, in one operation.
__device__ inline uint32_t lop3_select(uint32_t mask, uint32_t a, uint32_t b) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(d) : "r"(mask), "r"(a), "r"(b));
  return d;
}

}  // namespace nvfp4::ptx
