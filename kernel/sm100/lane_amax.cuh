// SPDX-License-Identifier: MIT
// The maxima of kernel/common/amax.cuh, where a lane has a column.
#pragma once

#include <cstdint>

#include "kernel/common/amax.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm100/lane_rows.cuh"
#include "kernel/sm100/params.h"

namespace nvfp4 {

// Every NaN of x has the same bits: an operation has made it.
struct LaneAmax {
  float of_all = 0;

  // Elements that do not exist become 0.
  __device__ void take(const Sm100Params& p, HalfRows rows, uint32_t n, uint32_t lane,
                       LaneRows& x) {
    const EpilogueParams& e = p.epilogue;
    if (n - lane + kSubTileWeights > p.n || rows.count < kHalfRows) {
      const uint32_t there = n < p.n ? rows.count : 0;
#pragma unroll
      for (uint32_t i = 0; i < kHalfRows; ++i) x[i] = i < there ? x[i] : 0;
    }
#pragma unroll
    for (float one : x) of_all = max_nan(of_all, fabsf(one));
    if (e.d_row_amax == nullptr) return;
    int32_t of_row = 0;
#pragma unroll
    for (uint32_t i = 0; i < kHalfRows; ++i) {
      const int32_t bits = __reduce_max_sync(0xFFFFFFFF, __float_as_int(fabsf(x[i])));
      if (lane == i) of_row = bits;
    }
    if (lane >= rows.count) return;
    float* const to = e.d_row_amax + (static_cast<uint64_t>(rows.batch) * p.m + rows.m + lane);
    ptx::red_global_max_s32(to, of_row);
  }
  __device__ void put(const EpilogueParams& e) const {
    if (e.d_amax != nullptr) add_amax(e.d_amax, 0xFFFFFFFF, of_all);
  }
};

}  // namespace nvfp4
