// SPDX-License-Identifier: MIT
// tcgen05.mma and tcgen05.cp on one CTA's memories: what their descriptors and addresses mean.
#pragma once

#include <cstdint>
#include <vector>

#include "../mem/shared_memory.h"
#include "instruction_descriptor.h"
#include "tensor_memory.h"

namespace emu {

// The operands of one block-scaled tcgen05.mma, as the instruction gives them.
struct MmaCommand {
  MmaKind kind = MmaKind::mxf4nvf4;
  uint32_t block = 16;        // elements per scale: 16 or 32
  uint32_t d = 0;             // tensor-memory addresses
  uint64_t a = 0, b = 0;      // shared-memory descriptors
  uint32_t instruction = 0;   // instruction descriptor
  uint32_t sfa = 0, sfb = 0;  // tensor-memory addresses, bits 31:30 may repeat the scale ids
  bool accumulate = false;    // enable-input-d
};

// What an instruction touches between its issue and its completion.
struct Footprint {
  std::vector<uint32_t> chunks;      // addresses of 16-byte chunks of shared memory that it reads
  uint32_t column = 0, columns = 0;  // tensor memory that it writes
  uint64_t macs = 0;                 // multiply-adds
};

// Both throw Fault. check = what can be said when the instruction is issued: descriptors,
// addresses, allocation; run checks again and computes.
Footprint check_mma(const MmaCommand& command, const TensorMemory& tensor);
void run_mma(const MmaCommand& command, const SharedMemory& shared, TensorMemory& tensor,
             bool zero_group_raises);

enum class CopyShape : uint8_t {
  r128x256b,
  r128x128b,
  r4x256b,
  r64x128b_02_13,
  r64x128b_01_23,
  r32x128b,
};

Footprint check_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor,
                            const TensorMemory& tensor);
void run_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor,
                     const SharedMemory& shared, TensorMemory& tensor);

}  // namespace emu
