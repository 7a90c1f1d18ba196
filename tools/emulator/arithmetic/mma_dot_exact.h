// SPDX-License-Identifier: MIT
// Dot products in which the model (mma_dot.h) cuts nothing, by the host's floats: such a sum is
// exact in any order. Most are of this kind: a step of K is a block of NVFP4, whose products lie
// close together. Each row and each column stores the range of its exponents, and the accumulator
// of each sum is checked. The caller computes by the model what these tests do not prove exact.
//
// Products are multiples of 2^lowest and have exponents of at most `top`. With
// top - lowest <= model bits no product is cut by another; an accumulator below
// 2^(lowest + model bits + 1) cuts none; and one that is a multiple of 2^(top - model bits) is not
// cut. Numbers are kept away from both ends of the range: no sum overflows or loses a bit there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tools/emulator/arithmetic/mma_element.h"
#include "tools/emulator/arithmetic/mma_vector.h"

namespace emu::exact_dot {

constexpr int max_depth = 32, depth_bits = 5, far = 1000;

// How far one row or column reaches. One that has only zeros reaches as far as 1 does.
struct Reach {
  int lowest = 0, top = 0;
  int spread() const { return top - lowest; }
};

// Elements as floats. Not `usable`: one is no number, or too far from 1.
struct Line {
  float value[max_depth];
  Reach reach;
  bool usable;
};

inline Line line_of(const Element* elements, int depth, int fraction_bits) {
  Line line;
  int lowest = far, top = -far;
  bool finite = true;
  for (int k = 0; k < depth; ++k) {
    const Element& e = elements[k];
    const int unit = e.exponent - fraction_bits;
    finite &= e.cls == Element::Class::finite;
    line.value[k] = 0;
    if (!e.significand) continue;
    lowest = std::min(lowest, unit + std::countr_zero(uint32_t(e.significand)));
    top = std::max(top, e.exponent);
    if (unit > -100 && unit < 100)
      line.value[k] = float(e.significand) * std::bit_cast<float>(uint32_t(127 + unit) << 23);
  }
  if (lowest < far) line.reach = {lowest, top};
  line.usable = finite && line.reach.lowest > -60 && line.reach.top < 40;
  return line;
}

template <int Width>
struct Columns {
  alignas(64) float value[max_depth][Width];
  // bounds of an accumulator, for a row that reaches from 0 to 0
  alignas(64) double limit[Width], quantum[Width];
  int spread = 0;       // the largest
  bool usable = false;  // all of them
};

constexpr double power_of_two(int e) { return std::bit_cast<double>(uint64_t(1023 + e) << 52); }

template <int Width>
EMU_INLINE void fill(const Line* lines, uint32_t count, int depth, int model_bits,
                     Columns<Width>& c) {
  c.spread = 0;
  c.usable = true;
  for (uint32_t n = 0; n < Width; ++n) {
    const Line* line = n < count ? &lines[n] : nullptr;
    const Reach reach = line ? line->reach : Reach{};
    c.spread = std::max(c.spread, reach.spread());
    c.usable &= !line || line->usable;
    c.limit[n] = power_of_two(reach.lowest + model_bits + 1);
    c.quantum[n] = power_of_two(model_bits - reach.top);
    for (int k = 0; k < depth; ++k) c.value[k][n] = line ? line->value[k] : 0;
  }
}

// Whether no sum is cut, whatever the accumulator is.
template <int Width>
EMU_INLINE bool fits(const Line& row, const Columns<Width>& columns, int model_bits) {
  return row.usable && columns.usable && row.reach.spread() + columns.spread <= model_bits;
}

// Sums of a product type that holds them: float where they have at most 24 bits. Eight columns at a
// time are declared as a vector: g++ turns plain loops of that width into shuffles.
template <class T, int Width>
EMU_INLINE void add_up(const Line& row, const Columns<Width>& columns, int depth, double* sum) {
  using Floats [[gnu::vector_size(8 * sizeof(float))]] = float;
  using Products [[gnu::vector_size(8 * sizeof(T))]] = T;
  for (int n = 0; n < Width; n += 8) {
    Products all = {};
    for (int k = 0; k < depth; ++k) {
      Floats column;
      std::memcpy(&column, &columns.value[k][n], sizeof column);
      all += T(row.value[k]) * __builtin_convertvector(column, Products);
    }
    for (int i = 0; i < 8; ++i) sum[n + i] = double(all[i]);
  }
}

// d = c + row * columns, rounded toward zero to the bits of fp32 that `kept` has. Returns false and
// writes nothing if some c has other bits, or if some accumulator would be cut or would cut a
// product.
template <int Width>
EMU_INLINE bool add(const Line& row, const Columns<Width>& columns, const uint32_t* c, int depth,
                    uint32_t kept, uint32_t* d) {
  constexpr double two52 = 4503599627370496.0;
  constexpr int float_bits = 24 - 2 - depth_bits;  // a product is below 4 * 2^top
  const double down = power_of_two(-row.reach.lowest), up = power_of_two(-row.reach.top);
  alignas(64) double acc[Width], sum[Width];
  int64_t odd = 0;
  for (int n = 0; n < Width; ++n) {
    acc[n] = double(std::bit_cast<float>(c[n]));
    const double size = std::bit_cast<double>(std::bit_cast<int64_t>(acc[n]) & INT64_MAX);
    const double units = size * up * columns.quantum[n];
    odd |= int64_t(!(size * down < columns.limit[n])) | int64_t((units + two52) - two52 != units) |
           int64_t(c[n] & ~kept);
  }
  if (odd) return false;
  if (row.reach.spread() + columns.spread <= float_bits)
    add_up<float>(row, columns, depth, sum);
  else
    add_up<double>(row, columns, depth, sum);
  for (int n = 0; n < Width; ++n) {
    const int64_t bits = std::bit_cast<int64_t>(acc[n] + sum[n]);
    const float cut = float(std::bit_cast<double>(bits & ~((1ll << 29) - 1)));
    d[n] = std::bit_cast<uint32_t>(cut) & kept;
  }
  return true;
}

}  // namespace emu::exact_dot
