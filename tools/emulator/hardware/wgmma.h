// SPDX-License-Identifier: MIT
// wgmma.mma_async on one CTA's shared memory and four warps' registers: what descriptors and
// fragments mean.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/emulator/hardware/instruction_descriptor.h"
#include "tools/emulator/hardware/mma_operand.h"
#include "tools/emulator/memory/shared_memory.h"

namespace emu {

constexpr uint32_t wgmma_warps = 4, wgmma_rows = 64;

// The operands of one wgmma.mma_async, as the instruction gives them.
struct WgmmaCommand {
  ElementType a_type = ElementType::f16, b_type = ElementType::f16;
  AccumulatorType d_type = AccumulatorType::f32;
  bool negate_a = false, negate_b = false, saturate = false;
  bool zero_raises = true;  // a setting of the model: mma_dot.h
  uint32_t n = 0;
  bool a_in_registers = false, accumulate = false;
  bool a_mn_major = false, b_mn_major = false;
  uint64_t a = 0, b = 0;  // shared-memory descriptors

  bool operator==(const WgmmaCommand& other) const {
    return a == other.a && b == other.b && accumulate == other.accumulate;
  }
  uint32_t d_registers() const { return d_type == AccumulatorType::f16 ? n / 4 : n / 2; }
};

// Per warp, fragment register and lane, row by row of [4][registers][32].
using Fragments = std::vector<uint32_t>;
constexpr uint32_t a_registers = 4;
// The row of A that is in this register of a lane.
constexpr uint32_t fragment_row(uint32_t warp, uint32_t reg, uint32_t lane) {
  return 16 * warp + lane / 4 + 8 * (reg % 2);
}

// The addresses of the 16-byte chunks of shared memory that it reads. Throws Fault on a descriptor
// that is wrong.
std::vector<uint32_t> check_wgmma(const WgmmaCommand& command);

// Does an operand start where the manual wants a base offset? A formal matter.
bool starts_inside_pattern(const WgmmaCommand& command);

// The rows of A and columns of B that lack a value.
struct WgmmaMissing {
  MissingRows a{std::vector<uint8_t>(wgmma_rows), ""}, b{std::vector<uint8_t>(256), ""};
  bool any() const { return a.any() || b.any(); }
};

// `a` is only used with A in registers. `d` holds the accumulators and gets the results. What an
// operand in shared memory lacks is added to `missing`.
void run_wgmma(const WgmmaCommand& command, const SharedMemory& shared, const Fragments& a,
               Fragments& d, WgmmaMissing& missing);

// The lanes of each register of D, [4][registers], in which a sum has no value.
std::vector<uint32_t> lost_lanes(const WgmmaCommand& command, const WgmmaMissing& missing);

}  // namespace emu
