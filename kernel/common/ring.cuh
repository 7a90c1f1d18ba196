// SPDX-License-Identifier: MIT
// Position in a ring of shared-memory stages, each guarded by a full and an empty mbarrier.
#pragma once

#include <cstdint>

namespace nvfp4 {

// Stage of the i-th k-block, and the parity of its full barrier's phase. The n-th round through the
// ring (n = 0, 1, ..) completes phase n of the full barrier, and later phase n of the empty
// barrier.
template <uint32_t kStages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  // Position of the i-th k-block from the start of the ring.
  static __device__ RingPosition at(uint32_t i) { return {i % kStages, i / kStages % 2}; }

  // Advances at most one round.
  __device__ void advance(uint32_t k_blocks = 1) {
    stage += k_blocks;
    if (stage >= kStages) {
      stage -= kStages;
      parity ^= 1;
    }
  }
};

}  // namespace nvfp4
