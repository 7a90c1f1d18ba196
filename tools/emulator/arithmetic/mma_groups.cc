// SPDX-License-Identifier: MIT
// See mma_groups.h: one column at a time, with every rule.
#include "tools/emulator/arithmetic/mma_groups.h"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace emu::groups_model {
namespace {

constexpr int group = 4, block = 16;

// What one column has beside C.
struct Products {
  // one per group; a block that is a term has the entry of its first group
  int64_t term[mma_depth / group];
  int32_t exponent[mma_blocks], product[mma_blocks];  // of the scales; with the largest product's
  int32_t scale = nothing, largest = nothing;         // S, P
};

// The exponent of twice an element.
int32_t raw_of(int16_t value) { return std::abs(value) >= 8 ? 2 : std::abs(value) >= 4; }

Products products_of(const Row& row, const Columns& columns, int n) {
  Products p;
  for (int g = 0; g < mma_blocks; ++g) {
    const int32_t significand = row.significand[g] * columns.significand[g][n];
    p.exponent[g] = row.exponent[g] + columns.exponent[g][n];
    p.product[g] = nothing;
    for (int k = block * g; k < block * (g + 1); ++k) {
      const int32_t product = row.value[k] * columns.value[k][n] * significand;
      p.term[k / group] = (k % group ? p.term[k / group] : 0) + product;
      if (product == 0) continue;
      p.product[g] = std::max(p.product[g],
                              p.exponent[g] + raw_of(row.value[k]) + raw_of(columns.value[k][n]));
      p.scale = std::max(p.scale, p.exponent[g]);
    }
    p.largest = std::max(p.largest, p.product[g]);
  }
  return p;
}

void merge(Products& p) {
  for (int i = 0; i < mma_depth / group; ++i)
    if (i % mma_blocks) p.term[i - i % mma_blocks] += std::exchange(p.term[i], 0);
}

// Units of 2^-8 at `exponent` in units of 2^quantum.
int64_t units(int64_t term, int32_t exponent, int32_t quantum) {
  const int32_t up = exponent - 8 - quantum;
  return term == 0 ? 0 : shift_toward_zero(term, std::max(up, 0), std::min(std::max(-up, 0), 63));
}

uint32_t rounded(int64_t sum, int32_t quantum) {
  const uint32_t bits = round_toward_zero(sum, quantum);
  return bits << 1 == 0 ? 0 : bits;
}

// The third rule's terms in units of 2^quantum, and without those that are too small to stay.
int64_t sum_third(const Products& p, int32_t quantum, int64_t c, int32_t rough, int32_t c_exponent,
                  int64_t least) {
  int64_t sum = c;
  for (int i = 0; i < mma_depth / group; ++i) {
    const int g = i / mma_blocks;
    const int32_t own = c_exponent >= p.product[g] ? std::max(rough, quantum) : quantum;
    const int64_t term = units(p.term[i], p.exponent[g], own) << (own - quantum);
    if (p.exponent[g] < p.scale && std::abs(term) < least) continue;
    sum += term;
  }
  return sum;
}

}  // namespace

uint32_t one(const Row& row, const Columns& columns, int n, uint32_t c, ScaleType type) {
  Products p = products_of(row, columns, n);
  const int32_t field = int32_t(c >> 23 & 0xFF), fraction = int32_t(c & 0x7FFFFF);
  const int64_t magnitude = field ? fraction | 1 << 23 : fraction;
  const int64_t significand = c >> 31 ? -magnitude : magnitude;
  const int32_t c_exponent = magnitude ? std::max(field, 1) - 127 : nothing;
  if (p.scale == nothing) return magnitude ? c : 0;

  const bool eighth = type == ScaleType::ue8m0;
  if (c_exponent >= p.largest) {
    merge(p);
    const int32_t quantum = c_exponent - fraction_bits;
    int64_t sum = significand << float_up;
    for (int g = 0; g < mma_blocks; ++g)
      sum += units(p.term[g * mma_blocks], p.exponent[g], quantum);
    return rounded(sum, quantum);
  }
  if (eighth) merge(p);
  const int32_t quantum = std::max(p.largest - 39, p.scale - fraction_bits);
  const int32_t c_up = c_exponent - 23 - quantum;
  const int64_t c_units =
      magnitude ? shift_toward_zero(significand, std::max(c_up, 0), std::clamp(-c_up, 0, 63)) : 0;
  // Under ue4m3 groups have no quantum of their own.
  const int32_t rough = eighth && magnitude ? c_exponent - fraction_bits : nothing;
  const uint32_t bits = rounded(sum_third(p, quantum, c_units, rough, c_exponent, 0), quantum);
  const uint32_t size = bits & 0x7FFFFFFF;
  if (!eighth || size == 0 || size >= 1u << 23 || quantum >= least_kept) return bits;
  const int64_t least = int64_t(1) << std::min(least_kept - quantum, 62);
  return rounded(sum_third(p, quantum, c_units, rough, c_exponent, least), quantum);
}

}  // namespace emu::groups_model
