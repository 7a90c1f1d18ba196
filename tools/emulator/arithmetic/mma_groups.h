// SPDX-License-Identifier: MIT
// The model of groups, published by sf-tensor/tcgen05 (MODEL.md at 8fce64d), whose authors report
// 46 million cases without a difference on a B200. A step adds a sum of products to the
// accumulator C and gives D; E_C is the exponent of C. Products that are zero are ignored. The
// exponent of a product is the sum of the exponents of its two elements and its two scales, where a
// subnormal has the exponent of the smallest normal number. P is the largest exponent of a product,
// and S the largest exponent of the two scales of a product together. The rules:
//
//   1. No product is left: D = C.
//   2. C is not zero and E_C >= P: D is the sum of C and the exact sums of blocks of 16, each cut
//      to a multiple of 2^(E_C-35).
//   3. Otherwise D is the sum of C and the exact sums of groups, each cut to a multiple of
//      2^max(P-39, S-35). The exponent of an element is at most 2, so P <= S + 4 and this is
//      2^(S-35). A group is 4 neighbours under ue4m3 and a block of 16 under ue8m0. Under ue8m0 a
//      block whose largest exponent is at most E_C is cut to a multiple of 2^(E_C-35).
//   4. If rule 3 applies under ue8m0 and the result is subnormal, a block is ignored if it is below
//      2^-174 and its scales are not the largest.
//
// A sum that is cut to zero is +0. Cutting each group of a block and cutting the sum of the block
// give the same result unless the block's exponent is more than 27 below S. Only scales of ue4m3
// can be so far apart. one() computes columns with such a block, and columns with a subnormal
// result, one at a time.
#pragma once

#include "tools/emulator/arithmetic/mma_rows.h"

namespace emu {

namespace groups_model {

constexpr int fraction_bits = 35, term_up = fraction_bits - 8, float_up = fraction_bits - 23;
constexpr int32_t nothing = -(1 << 18);  // the exponent of what is not there
constexpr int32_t least_kept = -174;

// Per column, from products that are not zero.
struct Exponents {
  // The exponent of the largest product of a block; `nothing` if all of its products are zero.
  alignas(64) int32_t product[mma_blocks][mma_width];
  alignas(64) int32_t scale[mma_width], largest[mma_width];  // S, P
};

// The exponent of a block's largest product without scales, -1 if all are zero. find_raw() counts
// the sums x + y for which some k has elements with exponents of at least x and y (Row::at_least).
// The exponent is that count less 1.
EMU_INLINE void find_raw(const Row& row, const Columns& columns, int g, int16_t* out) {
  for (int n = 0; n < mma_width; ++n) {
    int16_t raw = -1;
    for (int sum = 0; sum <= 2 * (mma_classes - 1); ++sum) {
      int any = 0;
      for (int i = 0; i < mma_classes; ++i)
        if (sum - i >= 0 && sum - i < mma_classes)
          any |= row.at_least[i][g] & columns.at_least[sum - i][g][n];
      raw = int16_t(raw + (any != 0));
    }
    out[n] = raw;
  }
}

EMU_INLINE void find_exponents(const Row& row, const Columns& columns, Exponents& out) {
  for (int n = 0; n < mma_width; ++n) out.scale[n] = out.largest[n] = nothing;
  for (int g = 0; g < mma_blocks; ++g) {
    alignas(64) int16_t raw[mma_width];
    find_raw(row, columns, g, raw);
    for (int n = 0; n < mma_width; ++n) {
      const bool counts = (raw[n] >= 0) & (row.significand[g] * columns.significand[g][n] != 0);
      const int32_t scales = row.exponent[g] + columns.exponent[g][n];
      out.product[g][n] = counts ? scales + raw[n] : nothing;
      out.largest[n] = std::max(out.largest[n], out.product[g][n]);
      out.scale[n] = std::max(out.scale[n], counts ? scales : nothing);
    }
  }
}

EMU_INLINE bool is_second_rule(const Exponents& e, const Accumulators& acc, int n) {
  return (acc.significand[n] != 0) & (acc.exponent[n] >= e.largest[n]);
}

// Adds C and the sums of the blocks of each column. The result is the model's in three cases: where
// rule 2 applies, under ue8m0, and under ue4m3 where it makes no difference that groups are cut and
// not blocks. `apart` marks the other columns; they have to be computed by one(). Returns whether
// there are any.
EMU_INLINE bool add(const Row& row, const Columns& columns, const BlockSums& blocks,
                    const Exponents& e, const Accumulators& acc, ScaleType type, MmaSums<>& out,
                    int32_t* apart) {
  const bool own_quantum = type == ScaleType::ue8m0;
  int32_t any = 0;
  for (int n = 0; n < mma_width; ++n) {
    out.largest[n] = is_second_rule(e, acc, n) ? acc.exponent[n] : e.scale[n];
    const int32_t down = out.largest[n] - acc.exponent[n];  // negative where S < E_C < P
    out.sum[n] = shift_toward_zero(acc.significand[n], float_up + std::clamp(-down, 0, 4),
                                   std::clamp(down, 0, 63));
    apart[n] = 0;
  }
  for (int g = 0; g < mma_blocks; ++g)
    for (int n = 0; n < mma_width; ++n) {
      const int32_t term = blocks.quarters[g][n] * (row.significand[g] * columns.significand[g][n]);
      const int32_t exponent = row.exponent[g] + columns.exponent[g][n];
      const bool below_c = own_quantum & (acc.significand[n] != 0) &
                           (acc.exponent[n] >= e.product[g][n]) &
                           (acc.exponent[n] > out.largest[n]);
      const int32_t rough = below_c ? acc.exponent[n] - out.largest[n] : 0;
      const int32_t down = std::clamp(out.largest[n] - exponent + rough, 0, 63 - 4);
      out.sum[n] += shift_toward_zero(term, term_up, down) << rough;
      const int32_t cut = int32_t(!own_quantum & !is_second_rule(e, acc, n) &
                                  (e.product[g][n] > nothing) & (down > 27));
      apart[n] |= cut;
      any |= cut;
    }
  return any != 0;
}

// Computes one column by the rules as they stand: for a result that is no normal number, and where
// groups are cut.
uint32_t one(const Row& row, const Columns& columns, int n, uint32_t c, ScaleType type);

}  // namespace groups_model

EMU_INLINE void sum_by_groups(const Row& row, const Columns& columns, const BlockSums& blocks,
                              const uint32_t* c, ScaleType type, uint32_t* d) {
  alignas(64) int32_t apart[mma_width];
  groups_model::Exponents exponents;
  Accumulators acc;
  MmaSums<> sums;
  groups_model::find_exponents(row, columns, exponents);
  decode_accumulators(c, acc);
  const bool some = groups_model::add(row, columns, blocks, exponents, acc, type, sums, apart);
  const bool whole = round_normal(sums, groups_model::fraction_bits, d);
  if (whole && !some) return;
  for (int n = 0; n < mma_width; ++n)
    if (!whole || apart[n]) d[n] = groups_model::one(row, columns, n, c[n], type);
}

}  // namespace emu
