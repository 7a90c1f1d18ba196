// SPDX-License-Identifier: MIT
// The arithmetic of one block-scaled MMA step (K = 64, e2m1 operands), bit for bit after one of two
// published models. Both add four blocks of 16 products and the accumulator C, cut terms toward
// zero at one quantum, add exactly and round toward zero to fp32, subnormals kept; a NaN scale or C
// gives 0x7FFFFFFF, an infinite C stays, a sum beyond the largest finite fp32 becomes infinity, one
// that is exactly zero is +0. They differ in what sets the quantum and in what is cut:
//
//   * blocks (MMA-Sim, arXiv 2511.10909), mma_blocks.h: each block is a term; 35 bits below the
//     largest exponent of the four scale pairs and C; a block whose sum is zero raises, or not;
//   * groups (sf-tensor/tcgen05, 46 million cases on a B200 by its authors), mma_groups.h: only
//     products that are not zero set the quantum; groups of 4 products are terms under ue4m3.
//
// Where nothing is cut both give the exact sum, and so does the short way of mma_exact.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

// Which model, and what a block of zeros does in that of blocks.
enum class ScaledSum : uint8_t { groups, blocks_zero_raises, blocks_zero_rests };

struct MmaOperands {
  const uint8_t* a;    // rows x 32 bytes: 64 e2m1 codes, low nibble first
  const uint8_t* b;    // n x 32 bytes
  const uint8_t* sfa;  // rows x 4 scale codes, one per block of 16 (block 32: each given twice)
  const uint8_t* sfb;  // n x 4
  uint32_t rows, n;
  ScaleType scale;
  bool negate_a, negate_b;
};

// d: rows x n accumulator bits, row r at d + r * stride; they are only read if `accumulate`.
void mma_block_scaled(const MmaOperands& operands, uint32_t* d, size_t stride, bool accumulate,
                      ScaledSum model);

// The same without the short way, for the test that both are equal.
void mma_block_scaled_cutting(const MmaOperands& operands, uint32_t* d, size_t stride,
                              bool accumulate, ScaledSum model);

}  // namespace emu
