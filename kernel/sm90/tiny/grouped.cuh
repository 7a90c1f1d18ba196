// SPDX-License-Identifier: MIT
// Tiny tiles of grouped products. The weight warp searches a tile, lists it and loads its weights;
// token warps take every third k-block of all listed tiles. All else is as in tiny.cuh.
#pragma once

#include <cstdint>

#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/grouped.cuh"
#include "kernel/sm90/tiny/tokens.cuh"

namespace nvfp4 {

// Loads a tile while the next one is not yet searched: TMA fetches what is requested meanwhile.
template <typename Tile>
__device__ void grouped_tiny_weight_warp(Cta90<Tile> cta, uint32_t lane) {
  const bool leads = ptx::elect_sync(), linear = has_linear_weight_scales<Tile>(cta.p);
  TileLister<Tile> lister{cta.p};
  lister.begin();
  WeightRing<Tile> ring;
  if (leads) note_clock(kClock_first_load);
  for (uint32_t number = 0; lister.list(cta.smem, number); ++number) {
    cta.tile = lister.tile;
    if (linear) {
      load_linear_weights_of_listed(cta, ring, leads, lane);
    } else if (leads) {
      load_weights_of_listed(cta, ring);
    }
    __syncwarp();
    lister.advance();
  }
}

// A token warp's k-blocks of all listed tiles, each with the rows of its tile. A warp reads the
// list as far ahead as it loads, and gives each tile back at once: its rows are in registers.
template <typename Tile>
struct GroupedTinyTokens {
  static constexpr uint32_t kAhead = 2;
  static constexpr uint32_t kWarps = Tile::kTokenWarps;
  // The warp that is furthest behind has written all k-blocks but kAhead of its own. If those are
  // tiles of one k-block, this many tiles are listed or about to be.
  static_assert(Tile::kListedTiles > kWarps * (kAhead + 1));

  struct Tasks {
    TinyTask of[Tile::kTokens];
    bool there;
  };
  Cta90<Tile> cta;
  uint32_t lane, stage, number = 0;
  Tasks next[kAhead];

  __device__ GroupedTinyTokens(const Cta90<Tile>& of, uint32_t warp, uint32_t lane_of_warp)
      : cta(of), lane(lane_of_warp), stage(warp) {}

  // False after the last tile.
  __device__ bool read_tile() {
    const bool there = await_listed(cta, number);
    __syncwarp();  // all have read it
    if (there && lane == 0) give_back_listed(cta, number);
    return there;
  }

  __device__ void load(Tasks& tasks) {
    for (; tasks.there && stage >= cta.count; stage -= cta.count) {
      ++number;
      tasks.there = read_tile();
    }
#pragma unroll
    for (uint32_t t = 0; t < Tile::kTokens; ++t) {
      const uint32_t row = cta.tile.token_tile + t;
      tasks.of[t] =
          load_tiny_task<true>(cta.p, 0, row, stage, lane, tasks.there && row < cta.tile.row_end);
    }
    stage += kWarps;
  }

  __device__ void run(uint32_t warp) {
    bool there = read_tile();
#pragma unroll
    for (uint32_t a = 0; a < kAhead; ++a) {
      next[a].there = there;
      load(next[a]);
      there = next[a].there;
    }
    for (auto at = RingPosition<Tile::kStages>::at(warp);;) {
#pragma unroll
      for (uint32_t a = 0; a < kAhead; ++a, at.advance(kWarps)) {
        if (!next[a].there) return;
        ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity ^ 1);
#pragma unroll
        for (uint32_t t = 0; t < Tile::kTokens; ++t) {
          write_tiny_task(cta, at.stage, t, lane, next[a].of[t]);
        }
        ptx::fence_proxy_async_shared_cta();
        ptx::mbarrier_arrive(cta.weights_full(at.stage));  // each lane for what it has written
        next[a].there = there;
        load(next[a]);
        there = next[a].there;
      }
    }
  }
};

}  // namespace nvfp4
