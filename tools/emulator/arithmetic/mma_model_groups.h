// SPDX-License-Identifier: MIT
// One element of a block-scaled MMA after the model of groups (sf-tensor/tcgen05), written plainly
// from its rules. It is the second opinion for mma_groups.h: slow, and shares no code with it or
// with the other model.
#pragma once

#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

// D = C + sum over 64 products: a, b are e2m1 codes (low nibble first), sfa and sfb one scale code
// for each 16, c the fp32 accumulator's bits.
uint32_t mma_model_groups(const uint8_t a[32], const uint8_t b[32], const uint8_t sfa[4],
                          const uint8_t sfb[4], ScaleType type, uint32_t c);

}  // namespace emu
