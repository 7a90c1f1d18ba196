// SPDX-License-Identifier: MIT
// tcgen05.mma and tcgen05.cp on the memories of one CTA or of a pair: what their descriptors and
// addresses mean.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/base/settings.h"
#include "tools/emulator/hardware/instruction_descriptor.h"
#include "tools/emulator/hardware/memories.h"

namespace emu {

// The operands of one tcgen05.mma, as the instruction gives them.
struct MmaCommand {
  MmaKind kind = MmaKind::mxf4nvf4;
  uint32_t block = 16;        // elements per scale: 16 or 32
  uint32_t d = 0;             // tensor-memory address
  bool a_in_tensor = false;   // a is a tensor-memory address
  uint64_t a = 0, b = 0;      // shared-memory descriptors
  uint32_t instruction = 0;   // instruction descriptor
  uint32_t sfa = 0, sfb = 0;  // tensor-memory addresses, bits 31:30 may repeat the scale ids
  bool accumulate = false;    // enable-input-d
  uint32_t scale_d = 0;       // scale-input-d: D is multiplied by 2^-scale_d first
  bool zero_raises = true;    // EMU_MMA_ZERO_GROUP, for kinds without scales
  ScaleBands scale_bands = ScaleBands::equal;
  ScaledSum scaled_sum = ScaledSum::groups;  // by EMU_MMA_MODEL and EMU_MMA_ZERO_GROUP
  std::array<uint32_t, 8> disabled = {};  // disable-output-lane: a bit per lane, the even CTA first
  bool weights = false;                   // .ws
  uint64_t zero_columns = 0;              // .ws: a mask of columns of B
  uint32_t line = 0;                      // of the PTX text
};

// What an instruction touches in one CTA between its issue and its completion.
struct Footprint {
  std::vector<uint32_t> chunks;      // addresses of 16-byte chunks of shared memory that it reads
  uint32_t column = 0, columns = 0;  // tensor memory that it writes
  uint64_t macs = 0;                 // multiply-adds
  struct Columns {
    uint32_t column, count;
    uint16_t groups = all_groups;
  };
  std::vector<Columns> reads = {};  // tensor memory that it reads: scales, A
  // Which lanes of the written columns are written: a bit for every 16 lanes.
  static constexpr uint16_t all_groups = 0xFF;
  uint16_t groups = all_groups;
};

// Both throw Fault. check = what can be said when the instruction is issued: descriptors,
// addresses, allocation; a footprint for each CTA. run checks again and computes.
std::vector<Footprint> check_mma(const MmaCommand& command, const Memories& ctas);
void run_mma(const MmaCommand& command, const Memories& ctas);

enum class CopyShape : uint8_t {
  r128x256b,
  r128x128b,
  r4x256b,
  r64x128b_02_13,
  r64x128b_01_23,
  r32x128b,
};

// What 16 bytes of shared memory hold. bytes: 16 bytes, copied unchanged. b6x16_p32: 16 elements of
// 6 bits, then 4 bytes of padding; each element is widened to a byte.
enum class CopyFormat : uint8_t { bytes, b6x16_p32 };

// In a pair each CTA copies from its own shared to its own tensor memory.
std::vector<Footprint> check_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor,
                                         const Memories& ctas);
void run_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor, const Memories& ctas,
                     CopyFormat format = CopyFormat::bytes);

}  // namespace emu
