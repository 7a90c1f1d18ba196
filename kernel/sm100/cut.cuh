// SPDX-License-Identifier: MIT
// The end of a K that is no multiple of 64: the TMA warp, which has nothing left to load, clears
// the scales beyond K of both operands in the last filling, and the MMA thread waits for that,
// there alone.
//
//   TMA warp (32 lanes, of a pair 64)  --- scales beyond K cleared ---  cut_ready  --->  MMA thread
//
//   Each CTA of a pair clears what it has loaded itself, so it counts the bytes of that filling
//   itself: the leader by full[s], as ever, the odd one by cut_full. Phases count tiles.
#pragma once

#include <cstdint>

#include "kernel/common/cut_scales.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm100/cta.cuh"

namespace nvfp4 {

template <typename Tile>
struct CutEnd {
  const Cta<Tile>& cta;

  // This CTA's last step has fewer than 64 elements.
  __device__ bool exists() const {
    return cta.p.k % kMmaK != 0 && (Cta<Tile>::kIsPair || cta.rank + 1 == cta.p.split);
  }
  __device__ bool is_in(uint32_t filling) const {
    return exists() && filling + 1 == cta.k.fillings;
  }

  __device__ void init_barriers() const {
    ptx::mbarrier_init(cta.at.cut_ready(), 32 * Tile::kCtas);
    if constexpr (Tile::kCtas == 2) ptx::mbarrier_init(cta.at.cut_full(), 1);
  }

  // By the MMA thread.
  __device__ void wait_until_cleared() const {
    if constexpr (Tile::kCtas == 2) {
      ptx::mbarrier_wait_cluster(cta.at.cut_ready(), cta.walk.turn % 2);
    } else {
      ptx::mbarrier_wait(cta.at.cut_ready(), cta.walk.turn % 2);
    }
  }

  // By all lanes, after the tile's last load has been issued: it was asked for when the stage's
  // phase before was over, so the wait cannot take that one for its own.
  __device__ void clear(uint32_t lane) const {
    const uint32_t filling = cta.k.fillings - 1;
    const auto at = cta.walk.position(filling);
    const uint32_t from =
        (scale_tiles(cta.p, cta.k.steps(filling)) - 1) * kScaleTileBytes + scale_lane(lane);
    const uint32_t k = cta.p.k >> cta.p.log2_steps_per_scale_tile;  // as if of 16 elements each
    if (cta.walk.turn > 0) wait_for_tile_before();
    if constexpr (Tile::kCtas == 2) {
      if (cta.leads()) {
        ptx::mbarrier_wait(cta.at.full(at.stage), at.parity);
      } else {
        ptx::mbarrier_wait(cta.at.cut_full(), cta.walk.turn % 2);
      }
    } else {
      ptx::mbarrier_wait(cta.at.full(at.stage), at.parity);
    }
    for (uint32_t i = 0; i < Tile::kMatrices; ++i) {
      clear_scales_beyond_k(cta.at.weight_scales(at.stage) + i * Tile::kWeightScaleBytes + from, k);
    }
    for (uint32_t i = 0; i < Tile::kTokenScaleBlocks; ++i) {
      const uint32_t block_at = i * Tile::kSteps * kScaleTileBytes;
      clear_scales_beyond_k(cta.at.token_scales(at.stage) + block_at + from, k);
    }
    ptx::fence_proxy_async_shared_cta();  // tcgen05.cp reads them next
    if constexpr (Tile::kCtas == 2) {
      ptx::mbarrier_arrive_cluster(ptx::mapa(cta.at.cut_ready(), 0));
    } else {
      ptx::mbarrier_arrive(cta.at.cut_ready());
    }
  }

 private:
  // What its clearing told has been seen then, so cut_ready is never two phases ahead of the wait.
  __device__ void wait_for_tile_before() const {
    Walk<Tile> before = cta.walk;
    --before.turn;
    ptx::mbarrier_wait(cta.at.accumulator_full(before.accumulator()), before.accumulator_parity());
  }
};

}  // namespace nvfp4
