// SPDX-License-Identifier: MIT
// The rows of a box, in the order in which shared memory has them: of a tile, of four single rows
// (.tile::gather4, .tile::scatter4), of the pixels of a column (.im2col).
#pragma once

#include "tools/emulator/hardware/tma.h"

namespace emu {

struct TmaRow {
  bool inside = true;    // in bounds in dimensions 1 and up
  uint64_t address = 0;  // of element 0 of dimension 0
  int64_t start = 0;     // bytes from there to the row's start, negative = before the tensor

  TmaRow(const TensorMap& m, const TmaCoordinates& c)
      : address(m.address), start(int64_t(c.at[0]) * m.element_bits() / 8) {}
  // Steps to coordinate `at` of dimension i >= 1.
  void go(const TensorMap& m, uint32_t i, int64_t at) {
    inside = inside && at >= 0 && uint64_t(at) < m.dim(i);
    address += uint64_t(at) * m.stride(i);
  }
};

template <class F>
void each_row_of_tile(const TensorMap& m, const TmaCoordinates& c, F f) {
  uint32_t rows = 1;
  for (uint32_t i = 1; i < m.rank; ++i) rows *= m.extent(i);
  for (uint32_t r = 0; r < rows; ++r) {
    TmaRow row(m, c);
    for (uint32_t i = 1, rest = r; i < m.rank; rest /= m.extent(i), ++i)
      row.go(m, i, int64_t(c.at[i]) + rest % m.extent(i) * m.element_strides[i]);
    f(row, r);
  }
}

template <class F>
void each_of_four_rows(const TensorMap& m, const TmaCoordinates& c, F f) {
  for (uint32_t r = 0; r < 4; ++r) {
    TmaRow row(m, c);
    row.go(m, 1, c.at[r + 1]);
    f(row, r);
  }
}

// The pixel at which the box of corners ends in dimension i, offsets left out.
inline int64_t last_pixel(const TensorMap& m, uint32_t i) {
  return int64_t(m.dim(i)) - 1 + m.upper[i - 1];
}

// From the start on along W to the upper corner, then from the lower corner of the next H, and so
// on through D and the images; the offsets are added to every pixel (PTX ISA 5.5.4).
template <class F>
void each_pixel(const TensorMap& m, const TmaCoordinates& c, F f) {
  int64_t at[TensorMap::max_rank];
  for (uint32_t i = 1; i < m.rank; ++i) at[i] = c.at[i];
  const uint32_t image = m.rank - 1u;
  for (uint32_t r = 0; r < m.pixels; ++r) {
    TmaRow row(m, c);
    for (uint32_t i = 1; i < image; ++i) row.go(m, i, at[i] + c.offset[i - 1]);
    row.go(m, image, at[image]);
    f(row, r);
    uint32_t i = 1;
    while (i < image && (at[i] += m.element_strides[i]) > last_pixel(m, i)) {
      at[i] = m.lower[i - 1];
      ++i;
    }
    if (i == image) ++at[image];
  }
}

// Calls f(row, its number).
template <class F>
void each_row(const TensorMap& m, const TmaCoordinates& c, F f) {
  switch (c.mode) {
    case TmaMode::tile: return each_row_of_tile(m, c, f);
    case TmaMode::rows4: return each_of_four_rows(m, c, f);
    case TmaMode::im2col: return each_pixel(m, c, f);
  }
}

}  // namespace emu
