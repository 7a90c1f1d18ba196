// SPDX-License-Identifier: MIT
// The K tail: where K is not a multiple of 64, the last step has fewer than four scales, and the
// bytes beside them may hold anything. TMA fills the codes beyond K with zeros, but zero times NaN
// is NaN, so those bytes are cleared in shared memory before they are used.
#pragma once

#include <cstdint>

#include "kernel/common/scale_tile.h"
#include "kernel/ptx/memory.cuh"

namespace nvfp4 {

// Clears a lane's sixteen bytes of a scale tile: the words of four rows.
__device__ inline void clear_scales_beyond_k(uint32_t lane_address, uint32_t k) {
  const uint32_t mask = scales_within_k(k);
  uint4 rows = ptx::ld_shared_v4_b32(lane_address);
  rows.x &= mask;
  rows.y &= mask;
  rows.z &= mask;
  rows.w &= mask;
  ptx::st_shared_v4_b32(lane_address, rows);
}

}  // namespace nvfp4
