// SPDX-License-Identifier: MIT
// The model of block-scaled sums that the settings name.
#pragma once

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/base/settings.h"

namespace emu::ops {

inline ScaledSum scaled_sum() {
  const Settings& s = settings();
  if (s.mma_model == MmaModel::groups) return ScaledSum::groups;
  return s.zero_group_raises ? ScaledSum::blocks_zero_raises : ScaledSum::blocks_zero_rests;
}

}  // namespace emu::ops
