// SPDX-License-Identifier: MIT
// The 64-bit shared-memory matrix descriptor of tcgen05.mma and tcgen05.cp (PTX ISA table 40).
//
//   63  61 60      53 52 51  49 48 46 45       32 31 30 29     16 15 14 13        0
//  |swizzle|    0    | m| base | 001 | stride/16 |  0  | lead/16 |  0  | address/16 |
#pragma once

#include <cstdint>
#include <string>

#include "tools/emulator/hardware/swizzle.h"

namespace emu {

struct SmemDescriptor {
  uint32_t address = 0;  // CTA-relative shared address, 18 bits
  // K-major: `lead` is the distance in bytes between 16-byte columns of K (unswizzled layouts
  // only), `stride` the distance between groups of eight rows. MN-major: see transposed_chunk.
  uint32_t lead = 0, stride = 0;
  Swizzle swizzle = Swizzle::none;
  Atom atom = Atom::b16;  // b32: patterns of four k instead of eight

  uint32_t pattern_lines() const { return atom == Atom::b32 ? 4 : 8; }

  // K-major: where the 16 bytes of K chunk `chunk` of row `row` are.
  uint32_t chunk(uint32_t row, uint32_t c) const {
    const uint32_t group = address + row / 8 * stride;
    if (swizzle == Swizzle::none) return group + row % 8 * 16 + c * lead;
    return swizzled(group + row % 8 * swizzle_span(swizzle) + c * 16, swizzle);
  }
  // MN-major: where the 16 bytes of rows of group `group` at element k of K are.
  uint32_t transposed_chunk(uint32_t group, uint32_t k) const;
};

// Throws Fault illegal_instruction naming every field that is wrong. `rows` and `chunks` (16-byte
// columns of K) are what the instruction will read.
SmemDescriptor decode_smem_descriptor(uint64_t bits, uint32_t rows, uint32_t chunks,
                                      const char* who);
// The same for MN-major operands: `groups` of 16 bytes of rows, `depth` elements of K.
SmemDescriptor decode_transposed_descriptor(uint64_t bits, uint32_t groups, uint32_t depth,
                                            uint32_t element_bytes, const char* who);

}  // namespace emu
