// SPDX-License-Identifier: MIT
// One element of a block-scaled MMA, written plainly after the published bit-accurate model
// (MMA-Sim, arXiv 2511.10909). It is the second opinion for mma_block_scaled.h: slow, and shares no
// code with it.
#pragma once

#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

// D = C + sum over four groups of 16: a, b are 64 e2m1 codes each (low nibble first), sfa and sfb
// one scale code per group, c the fp32 accumulator's bits.
uint32_t mma_model(const uint8_t a[32], const uint8_t b[32], const uint8_t sfa[4],
                   const uint8_t sfb[4], ScaleType type, uint32_t c, bool zero_group_raises);

}  // namespace emu
