// SPDX-License-Identifier: MIT
// The 64-bit shared-memory matrix descriptor of wgmma (PTX ISA, Asynchronous Warpgroup Level Matrix
// Shared Memory Layout).
//
//   63  62 61      52 51  49 48 46 45       32 31 30 29     16 15 14 13        0
//  |swizzle|    0    | base |  0  | stride/16 |  0  | lead/16 |  0  | address/16 |
//
// K-major: rows of M or N, 32 bytes of K each. MN-major (16-bit types): rows of K, along M or N in
// chunks of eight elements. What lead and stride mean depends on both and on the swizzle.
#pragma once

#include <cstdint>

#include "tools/emulator/hardware/swizzle.h"

namespace emu {

struct WgmmaDescriptor {
  uint32_t address = 0, lead = 0, stride = 0;
  Swizzle swizzle = Swizzle::none;
  bool mn_major = false;

  // K-major tiles may start at any row of the swizzle pattern: the swizzle counts from address 0,
  // so TMA and wgmma agree. The manual wants the row in the base offset then; kernels that others
  // measured on H100s (fast.cu's 4 to 9, tiles at 0x480) leave it 0 and are right.
  bool starts_inside_pattern() const {
    return !mn_major && swizzle != Swizzle::none &&
           address & (8 * swizzle_span(swizzle) - 1) & ~(swizzle_span(swizzle) - 1);
  }
  // K-major: where the 16 bytes of K chunk `chunk` of row `row` are.
  uint32_t k_chunk(uint32_t row, uint32_t chunk) const;
  // MN-major: where elements 8 * chunk .. 8 * chunk + 7 of M or N are, for one k.
  uint32_t mn_chunk(uint32_t chunk, uint32_t k) const;
};

// Throws Fault illegal_instruction naming every field that is wrong; `rows` of M or N are read.
WgmmaDescriptor decode_wgmma_descriptor(uint64_t bits, uint32_t rows, bool mn_major,
                                        const char* who);

}  // namespace emu
