// SPDX-License-Identifier: MIT
// The tile of a grouped product that belongs to an index. The number of rows of each group is in
// device memory. So a grid has a CTA for each possible tile, or one per SM, and CTAs that find no
// tile end. A thread that searches the list has waited for earlier grids, which may write it.
#pragma once

#include <cstdint>

#include "kernel/common/groups.h"
#include "kernel/common/scale_tile.h"
#include "kernel/common/tiles.cuh"
#include "kernel/ptx/memory.cuh"

namespace nvfp4 {

__device__ inline uint32_t lane_number() { return threadIdx.x % 32; }

// The largest value of this lane and all lower lanes.
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

// The rows of a group, clamped to rows that exist.
struct GroupRows {
  uint32_t begin, end;

  __device__ uint32_t tiles(uint32_t rows_of_tile) const {
    return (end - begin + rows_of_tile - 1) / rows_of_tile;
  }
};

// 32 groups, one per lane; lanes beyond the last group have no rows. `before` is the end of the
// rows of the previous group. The caller's numbers are not trusted. An end that is negative, below
// the previous end or beyond M is clamped, and so is a count that is negative or above the
// capacity. So no group has a row outside D, and no row belongs to two groups.
__device__ inline GroupRows rows_of_group(const GroupParams& p, uint32_t group, uint32_t before) {
  const int32_t given = group < p.count ? p.rows[group] : 0;
  const uint32_t most = p.capacity == 0 ? p.m : p.capacity;
  const uint32_t clamped = min(static_cast<uint32_t>(max(given, 0)), most);
  GroupRows rows;
  if (p.capacity != 0) {
    const uint64_t begin = static_cast<uint64_t>(group) * p.capacity, m = p.m;
    return {static_cast<uint32_t>(min(begin, m)), static_cast<uint32_t>(min(begin + clamped, m))};
  }
  rows.end = largest_up_to_lane(max(clamped, before));
  const uint32_t end_below = __shfl_up_sync(0xFFFFFFFF, rows.end, 1);
  rows.begin = lane_number() == 0 ? before : end_below;
  return rows;
}

// Sum of a value over all groups before a lane's group: lower lanes, and earlier steps of 32.
struct UpToGroup {
  uint32_t of_steps = 0;  // sum over earlier steps
  uint32_t of_group, before;

  __device__ void take(uint32_t value) {
    of_group = value;
    before = of_steps + sum_up_to_lane(value) - value;
  }
  __device__ void next() { of_steps = __shfl_sync(0xFFFFFFFF, before + of_group, 31); }
};

// Called by a whole warp. Groups follow each other; within a group, token tiles vary fastest, as in
// tiles.cuh. A search continues from the 32 groups that it has reached, so its indices must ascend.
// If scales are in 128x4 tiles, the scales of each group begin a new tile of 128 rows, after those
// of the previous groups or at the row in scale_rows. Otherwise the scales of a row follow those of
// the previous row.
struct GroupWalk {
  uint32_t first = 0, end_before = 0;
  UpToGroup tiles, scale_tiles;

  // False if the index is beyond the last tile.
  template <uint32_t kTokens>
  __device__ bool tile_at(const GroupParams& p, uint32_t tiles_n, bool scales_are_tiles,
                          uint32_t index, TileCoordinate* tile) {
#pragma unroll 1
    for (; first < p.count; first += 32) {
      const GroupRows rows = rows_of_group(p, first + lane_number(), end_before);
      tiles.take(rows.tiles(kTokens) * tiles_n);
      scale_tiles.take(rows.tiles(kScaleTileRows));
      const uint32_t in_group = index - tiles.before;  // valid if the tile is one of the group's
      const uint32_t hits =
          __ballot_sync(0xFFFFFFFF, index >= tiles.before && in_group < tiles.of_group);
      if (hits != 0) {
        const uint32_t lane = __ffs(hits) - 1;
        const auto of_hit = [&](uint32_t value) { return __shfl_sync(0xFFFFFFFF, value, lane); };
        const uint32_t begin = of_hit(rows.begin), end = of_hit(rows.end), at = of_hit(in_group);
        const uint32_t token_tiles = GroupRows{begin, end}.tiles(kTokens);
        const uint32_t weight_tile = at / token_tiles;
        const uint32_t row = (at - weight_tile * token_tiles) * kTokens;  // row within the group
        uint32_t scales = of_hit(scale_tiles.before) * kScaleTileRows;
        if (p.scale_rows != nullptr) scales = p.scale_rows[first + lane];
        if (!scales_are_tiles) scales = begin;
        *tile = {begin + row, weight_tile, first + lane, end, scales + row};
        return true;
      }
      tiles.next();
      scale_tiles.next();
      end_before = __shfl_sync(0xFFFFFFFF, rows.end, 31);
    }
    return false;
  }
};

// The same for a single index.
template <uint32_t kTokens>
__device__ bool grouped_tile_at(const GroupParams& p, uint32_t tiles_n, bool scales_are_tiles,
                                uint32_t index, TileCoordinate* tile) {
  return GroupWalk().tile_at<kTokens>(p, tiles_n, scales_are_tiles, index, tile);
}

// The group's factor, one of `alphas`.
__device__ inline float alpha_of_group(const float* alphas, uint32_t group, float of_all) {
  return alphas == nullptr ? of_all : __uint_as_float(ptx::ld_global_b32_if(alphas + group, true));
}

// The element of the biases of all groups at which the group's begins.
__device__ inline int64_t bias_of_group(const GroupParams& p, uint32_t group) {
  return group * p.bias_stride;
}

// Finds the place of a row's scales in 128x4 tiles. Called by a whole warp. False if the row
// belongs to no group.
__device__ inline bool scale_row_of(const GroupParams& p, uint32_t row, uint32_t* scale_row) {
  uint32_t end_before = 0;
  UpToGroup tiles;
#pragma unroll 1
  for (uint32_t first = 0; first < p.count; first += 32) {
    const GroupRows rows = rows_of_group(p, first + lane_number(), end_before);
    tiles.take(rows.tiles(kScaleTileRows));
    const uint32_t hits = __ballot_sync(0xFFFFFFFF, row >= rows.begin && row < rows.end);
    if (hits != 0) {
      const uint32_t of_lane = tiles.before * kScaleTileRows + row - rows.begin;
      *scale_row = __shfl_sync(0xFFFFFFFF, of_lane, __ffs(hits) - 1);
      return true;
    }
    tiles.next();
    end_before = __shfl_sync(0xFFFFFFFF, rows.end, 31);
  }
  return false;
}

}  // namespace nvfp4
