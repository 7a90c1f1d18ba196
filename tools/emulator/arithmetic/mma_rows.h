// SPDX-License-Identifier: MIT
// The operands of a block-scaled MMA step as integers. Both models and the exact path read them.
#pragma once

#include <cstdint>

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/arithmetic/mma_vector.h"

namespace emu {

constexpr int mma_blocks = 4, mma_depth = 64;  // blocks per step, elements of K per step
constexpr int mma_classes = 3;                 // exponents of elements: 0, 1, 2

// A scale is significand / 8 * 2^exponent, and `scale` is its exact value. In a Row it is divided
// by 4, because elements are doubled in `value`, so their products are 4 times too large.
struct Row {
  int16_t value[mma_depth];                   // twice the element
  int16_t at_least[mma_classes][mma_blocks];  // a bit per element of that exponent and more
  int32_t significand[mma_blocks], exponent[mma_blocks];
  double scale[mma_blocks];
  bool nan;  // one of the scales is
};

// Up to mma_width columns. Missing columns have elements and scales of zero; they are computed and
// dropped. A column with a NaN scale is loaded in the same way.
struct Columns {
  alignas(64) int16_t value[mma_depth][mma_width];
  alignas(64) int16_t at_least[mma_classes][mma_blocks][mma_width];
  alignas(64) int32_t significand[mma_blocks][mma_width], exponent[mma_blocks][mma_width];
  alignas(64) double scale[mma_blocks][mma_width];
  alignas(64) int32_t nan[mma_width];  // -1 or 0
};

void load_row(const MmaOperands& operands, uint32_t row, Row& to);
void load_columns(const MmaOperands& operands, uint32_t first, Columns& to);

// 16 products of at most 144 stay inside 16 bits.
EMU_INLINE void dot16(const int16_t* a, const int16_t (*b)[mma_width], int16_t* out) {
  for (int n = 0; n < mma_width; ++n) {
    int16_t sum = 0;
    for (int k = 0; k < 16; ++k) sum = int16_t(sum + a[k] * b[k][n]);
    out[n] = sum;
  }
}

// Sums of blocks, in quarters.
struct BlockSums {
  alignas(64) int16_t quarters[mma_blocks][mma_width];
};

EMU_INLINE void sum_blocks(const Row& row, const Columns& columns, BlockSums& out) {
  for (int g = 0; g < mma_blocks; ++g)
    dot16(row.value + 16 * g, columns.value + 16 * g, out.quarters[g]);
}

// An accumulator is significand / 2^23 * 2^exponent.
struct Accumulators {
  alignas(64) int32_t significand[mma_width], exponent[mma_width];
};

EMU_INLINE void decode_accumulators(const uint32_t* c, Accumulators& out) {
  for (int n = 0; n < mma_width; ++n) {
    const int32_t field = int32_t(c[n] >> 23 & 0xFF), fraction = int32_t(c[n] & 0x7FFFFF);
    const int32_t magnitude = field ? fraction | 1 << 23 : fraction;
    out.significand[n] = int32_t(c[n]) < 0 ? -magnitude : magnitude;
    out.exponent[n] = (field ? field : 1) - 127;
  }
}

// NaN and infinities need no sum. For such a column the sum starts with 0 in `finite`; `fixed` is
// the result, and `is_fixed` is -1.
struct Specials {
  alignas(64) uint32_t finite[mma_width], fixed[mma_width];
  alignas(64) int32_t is_fixed[mma_width];
};

EMU_INLINE void find_specials(const Columns& columns, const uint32_t* c, Specials& out) {
  for (int n = 0; n < mma_width; ++n) {
    const uint32_t size = c[n] & 0x7FFFFFFF;
    const int32_t nan = columns.nan[n] | -int32_t(size > 0x7F800000);
    out.is_fixed[n] = nan | -int32_t(size == 0x7F800000);
    out.fixed[n] = nan ? nan_f32 : c[n];
    out.finite[n] = out.is_fixed[n] ? 0 : c[n];
  }
}

EMU_INLINE void put_specials(const Specials& specials, uint32_t* d) {
  for (int n = 0; n < mma_width; ++n) d[n] = specials.is_fixed[n] ? specials.fixed[n] : d[n];
}

// value * 2^up * 2^-down toward zero: shifts magnitudes, not two's complement. down < 64.
EMU_INLINE int64_t shift_toward_zero(int64_t value, int32_t up, int32_t down) {
  const int64_t sign = value >> 63;
  const uint64_t cut = uint64_t((value ^ sign) - sign) << uint32_t(up) >> uint32_t(down);
  return (int64_t(cut) ^ sign) - sign;
}

}  // namespace emu
