// SPDX-License-Identifier: MIT
// The fast path of a block-scaled MMA step, for sums of which no model cuts any bit.
//
// Let G be the exponent of the scale pair of a block (a subnormal has the exponent of the smallest
// normal number), E_C that of C (-126 if C is zero), and M the largest of E_C and the four G. If
// all four G are at least M - 27, and C is zero or E_C >= M - 12, then each model gives the exact
// sum rounded toward zero:
//
//   * The sum of a block, or of a group in it, is a multiple of 1/4 * 1/8 * 1/8 * 2^G = 2^(G-8),
//     and so of 2^(M-35). C is a multiple of 2^(E_C-23), and so of 2^(M-35).
//   * The model "blocks" (mma_model.cc) cuts to multiples of 2^(E-35), where E is the largest
//     exponent of all terms that it aligns, so E <= M.
//   * The model "groups" (mma_groups.h) cuts to multiples of 2^(E_C-35) or of 2^max(P-39, S-35).
//     In the first case E_C <= M. In the second case S <= M is the largest G of a product that is
//     not zero, and P <= S + 4.
//   * Cutting a number to a multiple of q does not change it if it is a multiple of q.
//
// The sum is below 2^(M+14), and a multiple of 2^(M-35): every partial sum in any order fits the 53
// bits of a double, so additions and multiplications of doubles are exact in any rounding mode.
// Subnormal results and infinity are left to the models. For subnormal results the models differ:
// in the sign of zero, and under ue8m0 in blocks below 2^-174. No operand is a NaN here.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tools/emulator/arithmetic/mma_rows.h"

namespace emu {

// Whether the conditions above hold in all columns.
EMU_INLINE bool nothing_is_cut(const Row& row, const Columns& columns, const uint32_t* c) {
  int32_t cut = 0;
  for (int n = 0; n < mma_width; ++n) {
    int32_t least = row.exponent[0] + columns.exponent[0][n], largest = least;
    for (int g = 1; g < mma_blocks; ++g) {
      const int32_t e = row.exponent[g] + columns.exponent[g][n];
      least = std::min(least, e);
      largest = std::max(largest, e);
    }
    const int32_t field = int32_t(c[n] >> 23 & 0xFF), nonzero = int32_t((c[n] & 0x7FFFFFFF) != 0);
    largest = std::max(largest, std::max(field, 1) - 127);
    cut |= int32_t(least < largest - 27) | (nonzero & int32_t(field - 127 < largest - 12)) |
           (nonzero & int32_t(field == 0));
  }
  return cut == 0;
}

// Returns whether all columns are normal numbers or zero.
EMU_INLINE bool exact_sums(const Row& row, const Columns& columns, const BlockSums& blocks,
                           const uint32_t* c, uint32_t* d) {
  alignas(64) double sum[mma_width];
  for (int n = 0; n < mma_width; ++n) sum[n] = double(std::bit_cast<float>(c[n]));
  for (int g = 0; g < mma_blocks; ++g)
    for (int n = 0; n < mma_width; ++n)
      sum[n] += double(blocks.quarters[g][n]) * (row.scale[g] * columns.scale[g][n]);
  int32_t odd = 0;
  for (int n = 0; n < mma_width; ++n) {
    const uint64_t bits = std::bit_cast<uint64_t>(sum[n]);
    const int32_t exponent = int32_t(bits >> 52 & 0x7FF) - 1023 + 127;
    const uint32_t sign = uint32_t(bits >> 32) & 0x80000000;
    const bool zero = bits << 1 == 0;
    odd |= int32_t(!zero) & int32_t((exponent < 1) | (exponent > 254));
    d[n] = zero ? 0 : sign | uint32_t(exponent) << 23 | (uint32_t(bits >> 29) & 0x7FFFFF);
  }
  return odd == 0;
}

}  // namespace emu
