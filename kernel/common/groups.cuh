// SPDX-License-Identifier: MIT
// The tile of a grouped product that belongs to an index. The number of rows of each group is in
// device memory. So a grid has a CTA for each possible tile, or one per SM, and CTAs that find no
// tile end. A thread that searches the list has waited for earlier grids, which may write it.
#pragma once

#include <cstdint>

#include "kernel/common/groups.h"
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

// The caller's numbers are not trusted. An end that is negative, below the previous end or beyond M
// is clamped, and so is a count that is negative or above the capacity. So no group has a row
// outside D, and no row belongs to two groups. Groups beyond the last one have no rows.
__device__ inline uint32_t clamped_rows(const GroupParams& p, uint32_t group) {
  const int32_t given = group < p.count ? p.rows[group] : 0;
  const uint32_t most = p.capacity == 0 ? p.m : p.capacity;
  return min(static_cast<uint32_t>(max(given, 0)), most);
}

// With a capacity: a group's rows by their number.
__device__ inline GroupRows counted_rows(const GroupParams& p, uint32_t group, uint32_t count) {
  const uint64_t begin = static_cast<uint64_t>(group) * p.capacity, m = p.m;
  return {static_cast<uint32_t>(min(begin, m)), static_cast<uint32_t>(min(begin + count, m))};
}

// `before` is the end of the rows of the previous group.
__device__ inline GroupRows rows_of_group(const GroupParams& p, uint32_t group, uint32_t before) {
  const uint32_t clamped = clamped_rows(p, group);
  if (p.capacity != 0) return counted_rows(p, group, clamped);
  return {before, max(clamped, before)};
}

// The same for a group of each lane, one after the other.
__device__ inline GroupRows rows_of_groups(const GroupParams& p, uint32_t group, uint32_t before) {
  const uint32_t clamped = clamped_rows(p, group);
  if (p.capacity != 0) return counted_rows(p, group, clamped);
  GroupRows rows;
  rows.end = largest_up_to_lane(max(clamped, before));
  const uint32_t end_below = __shfl_up_sync(0xFFFFFFFF, rows.end, 1);
  rows.begin = lane_number() == 0 ? before : end_below;
  return rows;
}

// Sum of a value over all groups before those of a lane: of lower lanes, and of earlier steps.
struct UpToGroup {
  uint32_t of_steps = 0;  // sum over earlier steps
  uint32_t of_lane, before;

  __device__ void take(uint32_t value) {
    of_lane = value;
    before = of_steps + sum_up_to_lane(value) - value;
  }
  __device__ void next() { of_steps = __shfl_sync(0xFFFFFFFF, before + of_lane, 31); }
};

// Called by a whole warp, which counts the tiles of up to 1,024 groups in one step. A lane counts
// those of `each` neighbouring groups. Their numbers share a line of the cache, so a step takes one
// latency of memory. A search then looks at the groups of one lane. Its indices must ascend from
// search to search. Groups follow each other; within a group, token tiles vary fastest, as in
// tiles.cuh.
//
// A tile's scale_row is the number of its first row among the rows of all groups.
template <uint32_t kTokens>
struct GroupWalk {
  uint32_t first = 0;  // of the step's groups
  uint32_t each = 32;
  uint32_t end_before = 0, end = 0;  // of the rows before a lane's groups, and up to them
  UpToGroup tiles, numbers;

  // Counts nothing if there is a single lane's share.
  __device__ void begin(const GroupParams& p, uint32_t tiles_n) {
    if (p.count <= each) {
      tiles.before = numbers.before = 0;
      tiles.of_lane = lane_number() == 0 ? UINT32_MAX : 0;
      return;
    }
    each = min((p.count + 31) / 32, each);
    count(p, tiles_n);
  }

  // False if the index is beyond the last tile.
  __device__ bool tile_at(const GroupParams& p, uint32_t tiles_n, uint32_t index,
                          TileCoordinate* tile) {
    for (;;) {
      const uint32_t lanes = lanes_with(tiles, index);
      if (lanes != 0) return find(p, tiles_n, index, __ffs(lanes) - 1, tile);
      if (p.count - first <= 32 * each) return false;
      first += 32 * each;
      end = __shfl_sync(0xFFFFFFFF, end, 31);
      tiles.next();
      numbers.next();
      count(p, tiles_n);
    }
  }

 private:
  static __device__ uint32_t lanes_with(const UpToGroup& t, uint32_t index) {
    return __ballot_sync(0xFFFFFFFF, index >= t.before && index - t.before < t.of_lane);
  }

  // `end` is that of the rows before the step.
  __device__ void count(const GroupParams& p, uint32_t tiles_n) {
    const uint32_t group = first + lane_number() * each;
    end_before = end;
    if (p.capacity == 0) {
#pragma unroll 4
      for (uint32_t i = 0; i < each; ++i) end = max(end, clamped_rows(p, group + i));
      end = largest_up_to_lane(end);
      const uint32_t end_below = __shfl_up_sync(0xFFFFFFFF, end, 1);
      if (lane_number() > 0) end_before = end_below;
    }
    uint32_t before = end_before, of_tiles = 0, all = 0;
#pragma unroll 4
    for (uint32_t i = 0; i < each; ++i) {
      const GroupRows rows = rows_of_group(p, group + i, before);
      before = rows.end;
      of_tiles += rows.tiles(kTokens);
      all += rows.end - rows.begin;
    }
    tiles.take(of_tiles * tiles_n);
    numbers.take(all);
  }

  // Looks at the groups of one lane, one per lane.
  __device__ bool find(const GroupParams& p, uint32_t tiles_n, uint32_t index, uint32_t of,
                       TileCoordinate* tile) const {
    const auto of_lane = [](uint32_t value, uint32_t lane) {
      return __shfl_sync(0xFFFFFFFF, value, lane);
    };
    const uint32_t group = lane_number() < each ? first + of * each + lane_number() : p.count;
    const GroupRows rows = rows_of_groups(p, group, of_lane(end_before, of));
    UpToGroup of_tiles{of_lane(tiles.before, of)}, of_rows{of_lane(numbers.before, of)};
    of_tiles.take(rows.tiles(kTokens) * tiles_n);
    of_rows.take(rows.end - rows.begin);
    const uint32_t lanes = lanes_with(of_tiles, index);
    if (lanes == 0) return false;
    const uint32_t lane = __ffs(lanes) - 1;
    const uint32_t begin = of_lane(rows.begin, lane), end_of_group = of_lane(rows.end, lane);
    const uint32_t batch = of_lane(group, lane), at = index - of_lane(of_tiles.before, lane);
    const uint32_t token_tiles = GroupRows{begin, end_of_group}.tiles(kTokens);
    const uint32_t weight_tile = at / token_tiles;
    const uint32_t row = (at - weight_tile * token_tiles) * kTokens;  // row within the group
    const uint32_t number = of_lane(of_rows.before, lane);
    *tile = {begin + row, weight_tile, batch, end_of_group, number + row};
    return true;
  }
};

// The tile of a single index.
template <uint32_t kTokens>
__device__ bool grouped_tile_at(const GroupParams& p, uint32_t tiles_n, uint32_t index,
                                TileCoordinate* tile) {
  GroupWalk<kTokens> walk;
  walk.begin(p, tiles_n);
  return walk.tile_at(p, tiles_n, index, tile);
}

// The group's factor, one of `alphas`.
__device__ inline float alpha_of_group(const float* alphas, uint32_t group, float of_all) {
  return alphas == nullptr ? of_all : __uint_as_float(ptx::ld_global_b32_if(alphas + group, true));
}

// The element of the biases of all groups at which the group's begins.
__device__ inline int64_t bias_of_group(const GroupParams& p, uint32_t group) {
  return group * p.bias_stride;
}

// The group's tensor scale of D; NULL if it has none of its own.
__device__ inline const float* d_tensor_scale_of_group(const GroupParams& p, uint32_t group) {
  return p.d_tensor_scale == nullptr ? nullptr : p.d_tensor_scale + group;
}

}  // namespace nvfp4
