// SPDX-License-Identifier: MIT
// Which tensor-memory cell each register of tcgen05.ld and tcgen05.st stands for (PTX
// ISA 9.7.16.2.3).
#pragma once

#include <cstdint>

namespace emu {

enum class AccessShape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

constexpr uint32_t registers_per_repeat(AccessShape s) {
  return s == AccessShape::s16x128b ? 2 : s == AccessShape::s16x256b ? 4 : 1;
}

struct Cell {
  uint32_t lane, column;  // relative to the instruction's address
};

// Register `reg` of thread `t` (0..31). `split` is the immediate of .16x32bx2.
constexpr Cell access_cell(AccessShape shape, uint32_t t, uint32_t reg, uint32_t split) {
  switch (shape) {
    case AccessShape::s32x32b: return {t, reg};
    case AccessShape::s16x64b: return {t / 4 + 8 * (t % 2), 2 * reg + t / 2 % 2};
    case AccessShape::s16x128b: return {t / 4 + 8 * (reg % 2), 4 * (reg / 2) + t % 4};
    case AccessShape::s16x256b:
      return {t / 4 + 8 * (reg / 2 % 2), 8 * (reg / 4) + 2 * (t % 4) + reg % 2};
    case AccessShape::s16x32bx2: return {t % 16, reg + (t < 16 ? 0 : split)};
  }
  return {};
}

// First lane of the access for warp `warp` of the CTA. A warp reaches its own quarter of the lanes
// only, 32 * (warp % 4) and up; lanes count modulo 128, as two-CTA kernels pass rank * 128 + lane.
// A lane of 0 to 31 is accepted from every warp and counts from the warp's own quarter: DeepGEMM,
// which is known to be right on B200s, gives every warp lane 0. Throws Fault illegal_instruction.
uint32_t access_lane(AccessShape shape, uint32_t address, uint32_t warp, const char* who);
bool names_no_quarter(uint32_t address, uint32_t warp);  // of another one than the first: formal

}  // namespace emu
