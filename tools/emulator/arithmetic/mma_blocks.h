// SPDX-License-Identifier: MIT
// The model of blocks (MMA-Sim, arXiv 2511.10909):
//
//   * four blocks of 16 products are summed exactly and multiplied by the scales' significands;
//   * the blocks and the accumulator are aligned to the largest exponent of the five, cut toward
//     zero to 35 fractional bits, and added exactly;
//   * a block that is zero counts with its scales' exponent, or, where `raises` is false, with -126
//     (two published readings). A sum that is cut to zero keeps its sign.
#pragma once

#include "tools/emulator/arithmetic/mma_rows.h"

namespace emu {

namespace blocks_model {

constexpr int zero_exponent = -126, fraction_bits = 35;
// The sum of a block is an integer in units of 1/4 * 1/8 * 1/8 = 2^-8. Shifted up by 27 bits it has
// 35 fractional bits. An fp32 significand has 23. After the shifts no term exceeds 2^46, and no sum
// exceeds 2^49.
constexpr int term_up = fraction_bits - 8, float_up = fraction_bits - 23;

EMU_INLINE void add(const Row& row, const Columns& columns, const BlockSums& blocks,
                    const uint32_t* c, bool raises, MmaSums<>& out) {
  alignas(64) int32_t term[mma_blocks][mma_width], down[mma_blocks][mma_width];
  Accumulators acc;
  decode_accumulators(c, acc);
  for (int n = 0; n < mma_width; ++n) out.largest[n] = acc.exponent[n];
  for (int g = 0; g < mma_blocks; ++g)
    for (int n = 0; n < mma_width; ++n) {
      term[g][n] = blocks.quarters[g][n] * (row.significand[g] * columns.significand[g][n]);
      const int32_t e = row.exponent[g] + columns.exponent[g][n];
      down[g][n] = term[g][n] == 0 && !raises ? zero_exponent : e;
      out.largest[n] = std::max(out.largest[n], down[g][n]);
    }
  // Shifts of 63 and more leave nothing.
  for (int g = 0; g < mma_blocks; ++g)
    for (int n = 0; n < mma_width; ++n) down[g][n] = std::min(out.largest[n] - down[g][n], 63);
  for (int n = 0; n < mma_width; ++n)
    out.sum[n] = shift_toward_zero(acc.significand[n], float_up,
                                   std::min(out.largest[n] - acc.exponent[n], 63));
  for (int g = 0; g < mma_blocks; ++g)
    for (int n = 0; n < mma_width; ++n)
      out.sum[n] += shift_toward_zero(term[g][n], term_up, down[g][n]);
}

}  // namespace blocks_model

EMU_INLINE void sum_by_blocks(const Row& row, const Columns& columns, const BlockSums& blocks,
                              const uint32_t* c, bool raises, uint32_t* d) {
  MmaSums<> sums;
  blocks_model::add(row, columns, blocks, c, raises, sums);
  if (round_normal(sums, blocks_model::fraction_bits, d)) return;
  for (int n = 0; n < mma_width; ++n)
    d[n] = round_toward_zero(sums.sum[n], sums.largest[n] - blocks_model::fraction_bits);
}

}  // namespace emu
