// SPDX-License-Identifier: MIT
// Position in a ring of shared-memory stages, each guarded by a full and an empty mbarrier.
#pragma once

#include <cstdint>

namespace nvfp4 {

// Stage of the i-th filling, and the parity of its full barrier's phase. The n-th round through the
// ring (n = 0, 1, ..) completes phase n of the full barrier, and later phase n of the empty
// barrier.
template <uint32_t kStages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace nvfp4
