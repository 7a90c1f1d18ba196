// SPDX-License-Identifier: MIT
// The arithmetic of one block-scaled MMA step (K = 64, e2m1 operands), bit for bit after one of two
// published models. Both add four blocks of 16 products and the accumulator C. They cut the terms
// toward zero to multiples of one number, the quantum, add them exactly and round the sum toward
// zero to fp32. Subnormal results are kept. A NaN scale or C gives 0x7FFFFFFF, and an infinite C
// stays. A sum beyond the largest finite fp32 becomes infinity, and a sum that is exactly zero is
// +0. The models differ in the quantum and in the terms:
//
//   * blocks (MMA-Sim, arXiv 2511.10909), mma_blocks.h: each block is a term. The quantum is 2^-35
//     times the largest power of two among the four scale pairs and C. It is a setting whether a
//     block whose sum is zero counts in this maximum.
//   * groups (sf-tensor/tcgen05, 46 million cases on a B200 by its authors), mma_groups.h: only
//     products that are not zero set the quantum. Under ue4m3 the terms are groups of 4 products.
//
// Where nothing is cut, both give the exact sum, and so does the short way of mma_exact.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

// Which model. In the model of blocks a block whose sum is zero counts in the largest exponent
// (raises) or does not (rests).
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
