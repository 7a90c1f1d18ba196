// SPDX-License-Identifier: MIT
// See mma_rows.h.
#include "tools/emulator/arithmetic/mma_rows.h"

#include <bit>
#include <cstring>

namespace emu {
namespace {

struct Scale {
  int32_t significand, exponent;  // significand in eighths
};

bool is_nan(uint8_t code, ScaleType type) {
  return type == ScaleType::ue8m0 ? code == 0xFF : (code & 0x7F) == 0x7F;
}

Scale decode(uint8_t code, ScaleType type) {
  if (type == ScaleType::ue8m0) return {8, int(code) - 127};
  code &= 0x7F;
  return code < 8 ? Scale{code, -6} : Scale{8 + (code & 7), (code >> 3) - 7};
}

double power_of_two(int e) { return std::bit_cast<double>(uint64_t(e + 1023) << 52); }

double value_of(const Scale& s) { return s.significand * power_of_two(s.exponent - 3); }

bool any_nan(const uint8_t* scales, ScaleType type) {
  bool any = false;
  for (int g = 0; g < mma_blocks; ++g) any |= is_nan(scales[g], type);
  return any;
}

// Twice the value of an e2m1 code: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives, without a table,
// which compilers turn into vectors.
EMU_INLINE int16_t doubled(int16_t code) {
  const int16_t m = code & 7;
  const int16_t size = int16_t(m + (m > 4) + (m > 5) + 3 * (m > 6));
  const int16_t sign = int16_t(-(code >> 3 & 1));
  return int16_t((size ^ sign) - sign);
}

// The elements of a byte lie side by side.
EMU_CLONES void decode_row(const uint8_t* packed, int16_t flip, int16_t* to) {
  for (int k = 0; k < mma_depth / 2; ++k) {
    const int16_t byte = packed[k];
    to[2 * k] = doubled(int16_t((byte & 15) ^ flip));
    to[2 * k + 1] = doubled(int16_t(byte >> 4 ^ flip));
  }
}

// Byte k of each column; two rows of values.
EMU_CLONES void decode_columns(const uint8_t (*bytes)[mma_width], int16_t flip,
                               int16_t (*to)[mma_width]) {
  for (int k = 0; k < mma_depth / 2; ++k)
    for (int n = 0; n < mma_width; ++n) {
      const int16_t byte = bytes[k][n];
      to[2 * k][n] = doubled(int16_t((byte & 15) ^ flip));
      to[2 * k + 1][n] = doubled(int16_t(byte >> 4 ^ flip));
    }
}

// The lowest bits of 16 nibbles.
int16_t lowest_bits(uint64_t nibbles) {
  nibbles &= 0x1111111111111111;
  nibbles = (nibbles | nibbles >> 3) & 0x0303030303030303;
  nibbles = (nibbles | nibbles >> 6) & 0x000F000F000F000F;
  nibbles = (nibbles | nibbles >> 12) & 0x000000FF000000FF;
  return int16_t(nibbles | nibbles >> 24);
}

// Exponents of codes without their sign: 0 of 1 to 3 (1/2 is subnormal), 1 of 4 and 5, 2 of 6 and
// 7.
void classify(const uint8_t* packed, int16_t* at_least, size_t step) {
  for (int g = 0; g < mma_blocks; ++g) {
    uint64_t codes = 0;
    for (int i = 7; i >= 0; --i) codes = codes << 8 | packed[8 * g + i];
    at_least[size_t(g) * step] = lowest_bits(codes | codes >> 1 | codes >> 2);
    at_least[size_t(mma_blocks + g) * step] = lowest_bits(codes >> 2);
    at_least[size_t(2 * mma_blocks + g) * step] = lowest_bits(codes >> 2 & codes >> 1);
  }
}

}  // namespace

void load_row(const MmaOperands& o, uint32_t r, Row& row) {
  row.nan = any_nan(o.sfa + r * mma_blocks, o.scale);
  decode_row(o.a + r * 32, o.negate_a ? 8 : 0, row.value);
  classify(o.a + r * 32, &row.at_least[0][0], 1);
  for (int g = 0; g < mma_blocks; ++g) {
    const Scale s = decode(o.sfa[r * mma_blocks + g], o.scale);
    row.significand[g] = s.significand;
    row.exponent[g] = s.exponent;
    row.scale[g] = value_of(s) / 4;
  }
}

void load_columns(const MmaOperands& o, uint32_t first, Columns& columns) {
  std::memset(static_cast<void*>(&columns), 0, sizeof columns);
  alignas(64) uint8_t bytes[mma_depth / 2][mma_width] = {};
  for (uint32_t i = 0; i < mma_width && first + i < o.n; ++i) {
    columns.nan[i] = -int32_t(any_nan(o.sfb + (first + i) * mma_blocks, o.scale));
    if (columns.nan[i]) continue;  // its column stays zero
    for (int k = 0; k < mma_depth / 2; ++k) bytes[k][i] = o.b[(first + i) * 32 + uint32_t(k)];
  }
  decode_columns(bytes, o.negate_b ? 8 : 0, columns.value);
  for (uint32_t i = 0; i < mma_width && first + i < o.n; ++i) {
    if (columns.nan[i]) continue;
    classify(o.b + (first + i) * 32, &columns.at_least[0][0][i], mma_width);
    for (int g = 0; g < mma_blocks; ++g) {
      const Scale s = decode(o.sfb[(first + i) * mma_blocks + g], o.scale);
      columns.significand[g][i] = s.significand;
      columns.exponent[g][i] = s.exponent;
      columns.scale[g][i] = value_of(s);
    }
  }
}

}  // namespace emu
