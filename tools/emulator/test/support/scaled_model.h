// SPDX-License-Identifier: MIT
// For each of the emulator's models of a block-scaled step: the plain model to compare it with.
#pragma once

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/arithmetic/mma_model.h"
#include "tools/emulator/arithmetic/mma_model_groups.h"

namespace unit {

inline uint32_t scaled_model(emu::ScaledSum model, const uint8_t* a, const uint8_t* b,
                             const uint8_t* sfa, const uint8_t* sfb, emu::ScaleType type,
                             uint32_t c) {
  if (model == emu::ScaledSum::groups) return emu::mma_model_groups(a, b, sfa, sfb, type, c);
  return emu::mma_model(a, b, sfa, sfb, type, c, model == emu::ScaledSum::blocks_zero_raises);
}

}  // namespace unit
