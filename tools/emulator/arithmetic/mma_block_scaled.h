// SPDX-License-Identifier: MIT
// The arithmetic of one block-scaled MMA step (K = 64, e2m1 operands), bit for bit after the
// published model (MMA-Sim, arXiv 2511.10909):
//
//   * four groups of 16 products are summed exactly and multiplied by the scales' significands;
//   * the group terms and the accumulator are aligned to the largest exponent of the five, cut
//   toward
//     zero to 35 fractional bits, and added exactly;
//   * the sum is rounded toward zero to fp32, subnormals kept.
//
// Where the model is silent: an infinite accumulator stays what it is; a sum beyond the largest
// finite fp32 becomes infinity; a sum that is exactly zero is +0 (also -0 plus nothing), one that
// is cut to zero keeps its sign. A NaN scale or accumulator gives 0x7FFFFFFF.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

struct MmaOperands {
  const uint8_t* a;    // rows x 32 bytes: 64 e2m1 codes, low nibble first
  const uint8_t* b;    // n x 32 bytes
  const uint8_t* sfa;  // rows x 4 scale codes, one per group of 16 (block 32: each given twice)
  const uint8_t* sfb;  // n x 4
  uint32_t rows, n;
  ScaleType scale;
  bool negate_a, negate_b;
};

// d: rows x n accumulator bits, row r at d + r * stride; they are only read if `accumulate`.
void mma_block_scaled(const MmaOperands& operands, uint32_t* d, size_t stride, bool accumulate,
                      bool zero_group_raises);

}  // namespace emu
