// SPDX-License-Identifier: MIT
// Which tile of a grouped product an index means. How many rows each group has is in device memory,
// so a grid has a CTA for each tile that there can be, and those beyond the last tile have nothing
// to do.
#pragma once

#include <cstdint>

#include "kernel/common/tiles.cuh"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// 32 groups, one to a lane: its rows, cut to what exists, and the tiles up to its last one.
struct GroupRows {
  uint32_t begin, end, tiles, tiles_before;

  // `before`: where the rows of the group before the first of these end.
  template <uint32_t kTokens>
  static __device__ GroupRows of(const Sm90GroupedParams& p, uint32_t group, uint32_t before);
};

__device__ inline uint32_t lane_number() { return threadIdx.x % 32; }

// The largest value of this lane and those below it.
__device__ inline uint32_t largest_up_to_lane(uint32_t value) {
#pragma unroll
  for (uint32_t by = 1; by < 32; by *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFF, value, by);
    if (lane_number() >= by) value = max(value, other);
  }
  return value;
}

__device__ inline uint32_t sum_up_to_lane(uint32_t value) {
#pragma unroll
  for (uint32_t by = 1; by < 32; by *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFF, value, by);
    if (lane_number() >= by) value += other;
  }
  return value;
}

// What the caller wrote is data: an end below 0, below one before it or beyond M is cut, so that no
// row outside D is a group's. Lanes beyond the last group have no rows.
template <uint32_t kTokens>
__device__ GroupRows GroupRows::of(const Sm90GroupedParams& p, uint32_t group, uint32_t before) {
  const int32_t given = group < p.gemm.batches ? p.row_ends[group] : 0;
  const uint32_t cut = min(static_cast<uint32_t>(max(given, 0)), p.gemm.m);
  GroupRows rows;
  rows.end = largest_up_to_lane(max(cut, before));
  const uint32_t end_below = __shfl_up_sync(0xFFFFFFFF, rows.end, 1);
  rows.begin = lane_number() == 0 ? before : end_below;
  rows.tiles = (rows.end - rows.begin + kTokens - 1) / kTokens * p.gemm.tiles_n;
  rows.tiles_before = sum_up_to_lane(rows.tiles) - rows.tiles;
  return rows;
}

// By a whole warp. Groups follow each other; within one, token tiles vary fastest, as in tiles.cuh.
// False where the index is beyond the last tile.
template <uint32_t kTokens>
__device__ bool grouped_tile_at(const Sm90GroupedParams& p, uint32_t index, TileCoordinate* tile) {
  uint32_t before = 0;
#pragma unroll 1
  for (uint32_t first = 0; first < p.gemm.batches; first += 32) {
    const GroupRows rows = GroupRows::of<kTokens>(p, first + lane_number(), before);
    const uint32_t in_group = index - rows.tiles_before;  // where it is one of the group's
    const uint32_t hits =
        __ballot_sync(0xFFFFFFFF, index >= rows.tiles_before && in_group < rows.tiles);
    if (hits != 0) {
      const uint32_t lane = __ffs(hits) - 1;
      const uint32_t begin = __shfl_sync(0xFFFFFFFF, rows.begin, lane);
      const uint32_t end = __shfl_sync(0xFFFFFFFF, rows.end, lane);
      const uint32_t at = __shfl_sync(0xFFFFFFFF, in_group, lane);
      const uint32_t token_tiles = (end - begin + kTokens - 1) / kTokens;
      const uint32_t weight_tile = at / token_tiles;
      *tile = {begin + (at - weight_tile * token_tiles) * kTokens, weight_tile, first + lane, end};
      return true;
    }
    index -= __shfl_sync(0xFFFFFFFF, rows.tiles_before + rows.tiles, 31);
    before = __shfl_sync(0xFFFFFFFF, rows.end, 31);
  }
  return false;
}

}  // namespace nvfp4
