// SPDX-License-Identifier: MIT
// See mma_block_scaled.h. The emulator's inner loop: it works on 32 columns at a time in plain
// loops of constant length, so that compilers vectorise them; only integers take part (and one
// exact conversion), so every clone and every host gives the same bits.
#include "tools/emulator/arithmetic/mma_block_scaled.h"

#include <algorithm>
#include <cstring>

#include "tools/emulator/arithmetic/mma_vector.h"

namespace emu {
namespace {

constexpr int groups = 4, depth = 64;  // groups per step, elements of K per step
constexpr int zero_exponent = -126;
constexpr int fraction_bits = 35;
// A group term is quarters * eighths * eighths = units of 2^-8, so 27 more bits make 35; an fp32
// significand has 23 fractional bits. No term exceeds 2^46 then, no sum 2^49.
constexpr int term_up = fraction_bits - 8, float_up = fraction_bits - 23;
constexpr int nan_exponent = 1 << 20;  // of a NaN scale: no sum of finite scales comes near

struct Scale {
  int32_t significand, exponent;  // significand in eighths
};

Scale decode(uint8_t code, ScaleType type) {
  if (type == ScaleType::ue8m0) return {8, code == 0xFF ? nan_exponent : int(code) - 127};
  code &= 0x7F;
  if (code == 0x7F) return {8, nan_exponent};
  return code < 8 ? Scale{code, -6} : Scale{8 + (code & 7), (code >> 3) - 7};
}

// Twice the value of each e2m1 code.
constexpr int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct Row {
  int16_t value[depth];
  int32_t significand[groups], exponent[groups];
};

struct Columns {
  alignas(64) int16_t value[depth][mma_width];
  alignas(64) int32_t significand[groups][mma_width], exponent[groups][mma_width];
};

void decode_values(const uint8_t* packed, bool negate, int16_t* to, size_t step) {
  for (int k = 0; k < depth; ++k) {
    const int16_t v = doubled[k % 2 ? packed[k / 2] >> 4 : packed[k / 2] & 15];
    to[k * step] = negate ? int16_t(-v) : v;
  }
}

void load_row(const MmaOperands& o, uint32_t r, Row& row) {
  decode_values(o.a + r * 32, o.negate_a, row.value, 1);
  for (int g = 0; g < groups; ++g) {
    const Scale s = decode(o.sfa[r * groups + g], o.scale);
    row.significand[g] = s.significand;
    row.exponent[g] = s.exponent;
  }
}

// Columns past n are zero with the smallest scale; they are computed and dropped.
void load_columns(const MmaOperands& o, uint32_t first, Columns& columns) {
  std::memset(&columns, 0, sizeof columns);
  for (uint32_t i = 0; i < mma_width && first + i < o.n; ++i) {
    decode_values(o.b + (first + i) * 32, o.negate_b, &columns.value[0][i], mma_width);
    for (int g = 0; g < groups; ++g) {
      const Scale s = decode(o.sfb[(first + i) * groups + g], o.scale);
      columns.significand[g][i] = s.significand;
      columns.exponent[g][i] = s.exponent;
    }
  }
}

// 16 products of at most 144 stay inside 16 bits.
EMU_INLINE void dot16(const int16_t* a, const int16_t (*b)[mma_width], int16_t* out) {
  for (int n = 0; n < mma_width; ++n) {
    int16_t sum = 0;
    for (int k = 0; k < 16; ++k) sum = int16_t(sum + a[k] * b[k][n]);
    out[n] = sum;
  }
}

EMU_INLINE void step(const Row& row, const Columns& columns, const uint32_t* c, bool raises,
                     MmaSums& out) {
  alignas(64) int16_t quarters[groups][mma_width];
  alignas(64) int32_t term[groups][mma_width], down[groups][mma_width], c_term[mma_width],
      c_down[mma_width];
  for (int g = 0; g < groups; ++g) dot16(row.value + 16 * g, columns.value + 16 * g, quarters[g]);

  for (int n = 0; n < mma_width; ++n) {
    const int32_t field = int32_t(c[n] >> 23 & 0xFF), fraction = int32_t(c[n] & 0x7FFFFF);
    const int32_t magnitude = field ? fraction | 1 << 23 : fraction;
    c_term[n] = int32_t(c[n]) < 0 ? -magnitude : magnitude;
    c_down[n] = (field ? field : 1) - 127;
    out.largest[n] = c_down[n];
  }
  for (int g = 0; g < groups; ++g)
    for (int n = 0; n < mma_width; ++n) {
      term[g][n] = quarters[g][n] * (row.significand[g] * columns.significand[g][n]);
      const int32_t e = row.exponent[g] + columns.exponent[g][n];
      down[g][n] = term[g][n] == 0 && !raises && e < nan_exponent / 2 ? zero_exponent : e;
      out.largest[n] = std::max(out.largest[n], down[g][n]);
    }
  // Shifts of 63 and more leave nothing.
  for (int n = 0; n < mma_width; ++n) c_down[n] = std::min(out.largest[n] - c_down[n], 63);
  for (int g = 0; g < groups; ++g)
    for (int n = 0; n < mma_width; ++n) down[g][n] = std::min(out.largest[n] - down[g][n], 63);

  // Cutting toward zero shifts magnitudes, not two's complement.
  for (int n = 0; n < mma_width; ++n) {
    const int64_t v = c_term[n], sign = v >> 63;
    const uint64_t cut = uint64_t((v ^ sign) - sign) << float_up >> uint32_t(c_down[n]);
    out.sum[n] = (int64_t(cut) ^ sign) - sign;
  }
  for (int g = 0; g < groups; ++g)
    for (int n = 0; n < mma_width; ++n) {
      const int64_t v = term[g][n], sign = v >> 63;
      const uint64_t cut = uint64_t((v ^ sign) - sign) << term_up >> uint32_t(down[g][n]);
      out.sum[n] += (int64_t(cut) ^ sign) - sign;
    }
}

void round_each(const MmaSums& sums, const uint32_t* c, uint32_t* d) {
  for (int n = 0; n < mma_width; ++n) {
    if (sums.largest[n] >= nan_exponent / 2)
      d[n] = nan_f32;
    else if ((c[n] & 0x7F800000) == 0x7F800000)
      d[n] = c[n] & 0x7FFFFF ? nan_f32 : c[n];
    else
      d[n] = round_toward_zero(sums.sum[n], sums.largest[n] - fraction_bits);
  }
}

EMU_INLINE bool special(const MmaSums& sums, const uint32_t* c) {
  int32_t any = 0;
  for (int n = 0; n < mma_width; ++n)
    any |= (sums.largest[n] >= nan_exponent / 2) | ((c[n] & 0x7F800000) == 0x7F800000);
  return any != 0;
}

EMU_CLONES void run_columns(const Row* rows, uint32_t count, const Columns& columns, uint32_t used,
                            uint32_t* d, size_t stride, bool accumulate, bool raises) {
  alignas(64) uint32_t c[mma_width] = {}, result[mma_width];
  MmaSums sums;
  for (uint32_t r = 0; r < count; ++r, d += stride) {
    if (accumulate) std::memcpy(c, d, used * sizeof *d);
    step(rows[r], columns, c, raises, sums);
    if (special(sums, c) || !round_normal(sums, fraction_bits, result)) round_each(sums, c, result);
    std::memcpy(d, result, used * sizeof *d);
  }
}

}  // namespace

void mma_block_scaled(const MmaOperands& o, uint32_t* d, size_t stride, bool accumulate,
                      bool zero_group_raises) {
  constexpr uint32_t batch = 128;
  Row rows[batch];
  Columns columns;
  for (uint32_t top = 0; top < o.rows; top += batch) {
    const uint32_t count = std::min(batch, o.rows - top);
    for (uint32_t r = 0; r < count; ++r) load_row(o, top + r, rows[r]);
    for (uint32_t first = 0; first < o.n; first += mma_width) {
      load_columns(o, first, columns);
      run_columns(rows, count, columns, std::min(uint32_t(mma_width), o.n - first),
                  d + top * stride + first, stride, accumulate, zero_group_raises);
    }
  }
}

}  // namespace emu
