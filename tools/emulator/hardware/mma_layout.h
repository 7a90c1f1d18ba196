// SPDX-License-Identifier: MIT
// Where tcgen05.mma has its matrices in tensor memory (PTX ISA 9.7.16.10.5; what the manual shows
// only in figures is taken from CUTLASS's fragment layouts).
//
//   layout  CTAs    M    element (m, n) of D
//   D         1   128    lane m, column n
//   F         1    64    lane m % 16 + 32 * (m / 16), column n; from lane 0 or 16
//   A         2   256    CTA m / 128, lane m % 128, column n
//   B         2   128    CTA m / 64, lane m % 64 + 64 * (n >= N / 2), column n % (N / 2)
//   E     1, .ws   64    lane m + 64 * (n >= N / 2), column n % (N / 2)
//   G     1, .ws   32    lane m + 32 * (n / (N / 4)), column n % (N / 4)
#pragma once

#include <cstdint>
#include <vector>

#include "tools/emulator/hardware/instruction_descriptor.h"

namespace emu {

enum class DataPath : uint8_t { d, f, a, b, e, g };

constexpr DataPath data_path(const MmaShape& s, bool pair, bool weights) {
  if (pair) return s.m == 256 ? DataPath::a : DataPath::b;
  if (weights && s.m == 32) return DataPath::g;
  return s.m == 128 ? DataPath::d : weights ? DataPath::e : DataPath::f;
}

// The parts of N that lie above each other in a CTA's lanes.
constexpr uint32_t folds(DataPath path) {
  return path == DataPath::g ? 4 : path == DataPath::b || path == DataPath::e ? 2 : 1;
}

// The columns of D in each CTA.
constexpr uint32_t accumulator_columns(const MmaShape& s, DataPath path) {
  return s.n / folds(path);
}

// Neighbouring lanes of one CTA that hold neighbouring rows of D from its column n on.
struct Strip {
  uint32_t cta, lane, row, rows, n, columns;
};
std::vector<Strip> accumulator_strips(const MmaShape& s, DataPath path, uint32_t first_lane);

// The lanes that hold row r of the CTA's share of an A in tensor memory. There is one for each part
// of N in the table above: two in layouts B and E, four in G.
std::vector<uint32_t> operand_lanes(DataPath path, uint32_t r, uint32_t first_lane);

// A scale word of 32 rows is repeated in lane bands of 32. Each band has every row of SFA. It has
// every row of SFB, too, except in layout B, where bands 0 and 1 have the rows below N / 2 and
// bands 2 and 3 the others.
struct ScaleCell {
  uint32_t lane, column;  // of the first copy; column relative to the address
  uint32_t bands;         // copies, at lane + 32 * i
};
ScaleCell sfa_cell(uint32_t r);  // r: row of the CTA's share
ScaleCell sfb_cell(const MmaShape& s, DataPath path, uint32_t n);
uint32_t sfa_columns(DataPath path);
uint32_t sfb_columns(const MmaShape& s, DataPath path);

}  // namespace emu
