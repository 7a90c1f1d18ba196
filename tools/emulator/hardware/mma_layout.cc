// SPDX-License-Identifier: MIT
// See mma_layout.h.
#include "tools/emulator/hardware/mma_layout.h"

#include "tools/emulator/base/settings.h"

namespace emu {
namespace {

constexpr uint32_t band = 32, bands = 4;

constexpr uint32_t columns_of(uint32_t rows) { return (rows + band - 1) / band; }

// The upper half of N has its scales in the upper lanes, and not in further columns.
bool has_halves(DataPath path) {
  return path == DataPath::b && settings().pair_scales == PairScales::halves;
}

}  // namespace

std::vector<Strip> accumulator_strips(const MmaShape& s, DataPath path, uint32_t first_lane) {
  std::vector<Strip> strips;
  switch (path) {
    case DataPath::d: strips.push_back({0, 0, 0, 128, 0, s.n}); break;
    case DataPath::f:
      for (uint32_t i = 0; i < bands; ++i)
        strips.push_back({0, first_lane + band * i, 16 * i, 16, 0, s.n});
      break;
    case DataPath::a:
      for (uint32_t cta = 0; cta < 2; ++cta) strips.push_back({cta, 0, 128 * cta, 128, 0, s.n});
      break;
    case DataPath::b:
      for (uint32_t cta = 0; cta < 2; ++cta)
        for (uint32_t half = 0; half < 2; ++half)
          strips.push_back({cta, 64 * half, 64 * cta, 64, s.n / 2 * half, s.n / 2});
      break;
    case DataPath::e:
    case DataPath::g:
      for (uint32_t i = 0; i < folds(path); ++i)
        strips.push_back({0, s.m * i, 0, s.m, s.n / folds(path) * i, s.n / folds(path)});
      break;
  }
  return strips;
}

std::vector<uint32_t> operand_lanes(DataPath path, uint32_t r, uint32_t first_lane) {
  if (path == DataPath::f) return {first_lane + r % 16 + band * (r / 16)};
  if (path == DataPath::b || path == DataPath::e) return {r, r + 64};
  if (path == DataPath::g) return {r, r + band, r + 2 * band, r + 3 * band};
  return {r};
}

ScaleCell sfa_cell(uint32_t r) { return {r % band, r / band, bands}; }

ScaleCell sfb_cell(const MmaShape& s, DataPath path, uint32_t n) {
  if (!has_halves(path)) return {n % band, n / band, bands};
  const uint32_t half = s.n / 2, upper = n >= half;
  return {n % half % band + 64 * upper, n % half / band, bands / 2};
}

uint32_t sfa_columns(DataPath path) { return columns_of(path == DataPath::b ? 64 : 128); }

uint32_t sfb_columns(const MmaShape& s, DataPath path) {
  return columns_of(has_halves(path) ? s.n / 2 : s.n);
}

}  // namespace emu
