// SPDX-License-Identifier: MIT
// Where K is no multiple of 64, the last 64-step has fewer than four scales, and the caller may
// keep anything in the bytes beside them. The codes beyond K are zero (filled by TMA), but zero
// times a NaN is one: in shared memory those bytes become zero before they are used.
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

// The sixteen bytes of a lane of a scale tile, four rows' words.
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
