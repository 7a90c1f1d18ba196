// SPDX-License-Identifier: MIT
// The tiles of a grouped product as a list in shared memory. A CTA makes it once, from the rows of
// the groups in device memory, and then any thread finds any tile. The rows are loaded at once, so
// up to 1,024 groups take the latency of a single load. A thread that makes the list has waited for
// earlier grids, which may write the rows.
//
//   rows of groups in device memory --- 32 lanes, some entries each ---> tiles before each entry
//
// Within a group token tiles vary fastest, as in tiles.cuh. If scales are in 128x4 tiles, those of
// each group begin a new tile of 128 rows, after those of the previous groups or at the row in
// scale_rows.
#pragma once

#include <cstdint>

#include "kernel/common/group_list.h"
#include "kernel/common/groups.cuh"
#include "kernel/common/offset.h"
#include "kernel/common/scale_tile.h"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/memory.cuh"

namespace nvfp4 {

// A tile has kTokens rows of a group, and a group that has rows has `tiles_n` tiles side by side.
template <uint32_t kTokens>
struct GroupList {
  const GroupParams& p;
  uint32_t tiles_n;
  uint32_t smem;  // address of a GroupListMemory

  // Called by a whole warp. Other warps see the list after a barrier.
  __device__ void make() const {
    if (p.count <= kListEntries) {
      copy_rows();
      make_entries<false>();
    } else {
      make_entries<true>();
    }
  }

  __device__ uint32_t all_tiles() const {
    return ptx::ld_shared_b32(smem + NVFP4_OFFSET_OF(GroupListMemory, all_tiles));
  }

  // The tile of an index below all_tiles(). The last entry that begins no later has it: empty ones
  // begin where the next one does.
  __device__ TileCoordinate tile_at(uint32_t index) const {
    const uint32_t run = groups_of_entry(), entries = (p.count + run - 1) / run;
    uint32_t entry = 0;
#pragma unroll 1
    for (uint32_t step = 0x80000000u >> __clz(entries); step > 0; step /= 2) {
      const uint32_t next = entry + step;
      if (next < entries && ptx::ld_shared_b32(tiles_at(next)) <= index) entry = next;
    }
    uint32_t at = index - ptx::ld_shared_b32(tiles_at(entry));
    uint32_t group = entry * run, scale_row = ptx::ld_shared_b32(scale_rows_at(entry));
    uint32_t before = 0;
    if (p.capacity == 0 && entry > 0) before = ptx::ld_shared_b32(rows_at(entry - 1));
#pragma unroll 1
    for (;; ++group) {
      const GroupRows rows = rows_of(group, before, run == 1 ? listed(group) : p.rows[group]);
      const uint32_t token_tiles = rows.tiles(kTokens);
      if (at < token_tiles * tiles_n) {
        const uint32_t weight_tile = at / token_tiles;
        const uint32_t row = (at - weight_tile * token_tiles) * kTokens;  // row within the group
        if (run > 1 && p.scale_rows != nullptr) scale_row = p.scale_rows[group];
        return {rows.begin + row, weight_tile, group, rows.end, scale_row + row};
      }
      at -= token_tiles * tiles_n;
      scale_row += rows.tiles(kScaleTileRows) * kScaleTileRows;
      before = rows.end;
    }
  }

 private:
  struct Sums {
    uint32_t tiles, scale_rows;

    __device__ void add(const GroupRows& rows, uint32_t tiles_n) {
      tiles += rows.tiles(kTokens) * tiles_n;
      scale_rows += rows.tiles(kScaleTileRows) * kScaleTileRows;
    }
  };
  struct Share {
    uint32_t first, last;  // entries of a lane
  };

  __device__ uint32_t groups_of_entry() const {
    return (p.count + kListEntries - 1) / kListEntries;
  }
  __device__ uint32_t tiles_at(uint32_t entry) const {
    return smem + NVFP4_OFFSET_OF(GroupListMemory, tiles) + 4 * entry;
  }
  __device__ uint32_t rows_at(uint32_t entry) const {
    return smem + NVFP4_OFFSET_OF(GroupListMemory, rows) + 4 * entry;
  }
  __device__ uint32_t scale_rows_at(uint32_t entry) const {
    return smem + NVFP4_OFFSET_OF(GroupListMemory, scale_rows) + 4 * entry;
  }
  __device__ int32_t listed(uint32_t entry) const {
    return static_cast<int32_t>(ptx::ld_shared_b32(rows_at(entry)));
  }

  // Copies what device memory says of each group. Every copy is under way at once.
  __device__ void copy_rows() const {
    const bool scales = p.scale_rows != nullptr;
#pragma unroll 4
    for (uint32_t group = lane_number(); group < p.count; group += 32) {
      ptx::cp_async_4_if(rows_at(group), p.rows + group, true);
      if (scales) ptx::cp_async_4_if(scale_rows_at(group), p.scale_rows + group, true);
    }
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncwarp();
  }

  // The caller's numbers are not trusted. An end that is negative, below the previous end or beyond
  // M is clamped, and so is a count that is negative or above the capacity. So no group has a row
  // outside D, and no row belongs to two groups.
  __device__ uint32_t clamped(int32_t given) const {
    return min(static_cast<uint32_t>(max(given, 0)), p.capacity == 0 ? p.m : p.capacity);
  }
  // `before` is the end of the rows of the previous group. All capacities together are at most M.
  __device__ GroupRows rows_of(uint32_t group, uint32_t before, int32_t given) const {
    if (p.capacity == 0) return {before, max(clamped(given), before)};
    return {group * p.capacity, group * p.capacity + clamped(given)};
  }

  // kRuns: an entry is a run of groups, of which device memory is asked again and again. Otherwise
  // copy_rows() has brought all of them.
  template <bool kRuns>
  __device__ void make_entries() const {
    const uint32_t run = kRuns ? groups_of_entry() : 1, entries = (p.count + run - 1) / run;
    // An odd number of entries for each lane, so that lanes hit all banks.
    const uint32_t each = (entries + 31) / 32 | 1, lane = lane_number();
    const Share share{min(lane * each, entries), min((lane + 1) * each, entries)};
    const uint32_t end_before = p.capacity == 0 ? largest_before<kRuns>(share, run) : 0;
    const Sums before = sums_before_lane(note_entries<kRuns>(share, run, end_before));
#pragma unroll 4
    for (uint32_t entry = share.first; entry < share.last; ++entry) {
      add(tiles_at(entry), before.tiles);
      if (kRuns || p.scale_rows == nullptr) add(scale_rows_at(entry), before.scale_rows);
    }
  }
  static __device__ void add(uint32_t address, uint32_t value) {
    ptx::st_shared_b32(address, ptx::ld_shared_b32(address) + value);
  }

  // The largest end of all groups before the lane's.
  template <bool kRuns>
  __device__ uint32_t largest_before(const Share& share, uint32_t run) const {
    uint32_t largest = 0;
    const uint32_t last = min(share.last * run, p.count);
#pragma unroll 4
    for (uint32_t group = share.first * run; group < last; ++group) {
      largest = max(largest, clamped(kRuns ? p.rows[group] : listed(group)));
    }
    const uint32_t below = __shfl_up_sync(0xFFFFFFFF, largest_up_to_lane(largest), 1);
    return lane_number() == 0 ? 0 : below;
  }

  // Notes the lane's entries as if no other lane had any. Returns the sums over them.
  template <bool kRuns>
  __device__ Sums note_entries(const Share& share, uint32_t run, uint32_t end_before) const {
    Sums sums{0, 0};
    GroupRows rows{0, end_before};
#pragma unroll 4
    for (uint32_t entry = share.first; entry < share.last; ++entry) {
      ptx::st_shared_b32(tiles_at(entry), sums.tiles);
      if (kRuns || p.scale_rows == nullptr) {
        ptx::st_shared_b32(scale_rows_at(entry), sums.scale_rows);
      }
      if constexpr (kRuns) {
        const uint32_t last = min((entry + 1) * run, p.count);
#pragma unroll 1
        for (uint32_t group = entry * run; group < last; ++group) {
          rows = rows_of(group, rows.end, p.rows[group]);
          sums.add(rows, tiles_n);
        }
      } else {
        rows = rows_of(entry, rows.end, listed(entry));
        sums.add(rows, tiles_n);
      }
      if (p.capacity == 0) ptx::st_shared_b32(rows_at(entry), rows.end);
    }
    return sums;
  }

  // The sums over all lower lanes. The last lane notes that of all.
  __device__ Sums sums_before_lane(const Sums& own) const {
    const Sums up_to{sum_up_to_lane(own.tiles), sum_up_to_lane(own.scale_rows)};
    if (lane_number() == 31) {
      ptx::st_shared_b32(smem + NVFP4_OFFSET_OF(GroupListMemory, all_tiles), up_to.tiles);
    }
    return {up_to.tiles - own.tiles, up_to.scale_rows - own.scale_rows};
  }
};

}  // namespace nvfp4
