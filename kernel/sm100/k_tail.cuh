// SPDX-License-Identifier: MIT
// The K tail, where K is not a multiple of 64. The TMA warp has nothing left to load by then, so it
// clears the scales beyond K of both operands in the last k-block; those of packed weights are 0.
// The MMA thread waits for this once, before that k-block's last step.
//
//   TMA warp (32 lanes, of a pair 64) --- scales beyond K cleared ---> k_tail_ready ---> MMA thread
//
//   Each CTA of a pair clears the scales that it has loaded, so it counts the bytes of that k-block
//   itself: the leader on full[s] as usual, the odd CTA on k_tail_full. A phase of k_tail_ready and
//   of k_tail_full is one tile.
#pragma once

#include <cstdint>

#include "kernel/common/k_tail_scales.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm100/cta.cuh"

namespace nvfp4 {

template <typename Tile>
struct KTail {
  const Cta<Tile>& cta;

  // Whether this CTA's last step has fewer than 64 elements.
  __device__ bool exists() const {
    return cta.p.k % kMmaK != 0 && (Cta<Tile>::kIsPair || cta.rank + 1 == cta.p.split);
  }
  __device__ bool is_in(uint32_t k_block) const {
    return exists() && k_block + 1 == cta.k.k_blocks;
  }

  __device__ void init_barriers() const {
    ptx::mbarrier_init(cta.at.k_tail_ready(), 32 * Tile::kCtas);  // lanes have cleared their scales
    if constexpr (Tile::kCtas == 2) {
      ptx::mbarrier_init(cta.at.k_tail_full(), 1);  // expect_tx of the odd CTA: copies are there
    }
  }

  // Called by the MMA thread.
  __device__ void wait_until_cleared() const {
    if constexpr (Tile::kCtas == 2) {
      ptx::mbarrier_wait_cluster(cta.at.k_tail_ready(), cta.walk.iteration % 2);
    } else {
      ptx::mbarrier_wait(cta.at.k_tail_ready(), cta.walk.iteration % 2);
    }
  }

  // Called by all lanes after the tile's last load has been issued. That load waited for the
  // previous phase of the stage, so this wait cannot mistake that phase for its own.
  __device__ void clear(uint32_t lane) const {
    const uint32_t k_block = cta.k.k_blocks - 1;
    const auto at = cta.walk.position(k_block);
    const uint32_t from =
        (scale_tiles(cta.p, cta.k.steps(k_block)) - 1) * kScaleTileBytes + scale_lane(lane);
    const uint32_t k = cta.p.k >> cta.p.log2_steps_per_scale_tile;  // K, for 16 elements per scale
    if (cta.walk.iteration > 0) wait_for_tile_before();
    if constexpr (Tile::kCtas == 2) {
      if (cta.leads()) {
        ptx::mbarrier_wait(cta.at.full(at.stage), at.parity);
      } else {
        ptx::mbarrier_wait(cta.at.k_tail_full(), cta.walk.iteration % 2);
      }
    } else {
      ptx::mbarrier_wait(cta.at.full(at.stage), at.parity);
    }
    const uint32_t matrices = cta.are_packed() ? 0 : Tile::kMatrices;
    for (uint32_t i = 0; i < matrices; ++i) {
      clear_scales_beyond_k(cta.at.weight_scales(at.stage) + i * Tile::kMatrixBytes + from, k);
    }
    for (uint32_t i = 0; i < cta.token_scale_blocks(); ++i) {
      const uint32_t block_at = i * Tile::kSteps * kScaleTileBytes;
      clear_scales_beyond_k(cta.at.token_scales(at.stage) + block_at + from, k);
    }
    ptx::fence_proxy_async_shared_cta();  // tcgen05.cp reads them next
    if constexpr (Tile::kCtas == 2) {
      ptx::mbarrier_arrive_cluster(ptx::mapa(cta.at.k_tail_ready(), 0));
    } else {
      ptx::mbarrier_arrive(cta.at.k_tail_ready());
    }
  }

 private:
  // Waits until the MMA thread has seen the previous tile's clearing, so that k_tail_ready is never
  // two phases ahead of the wait.
  __device__ void wait_for_tile_before() const {
    Walk<Tile> before = cta.walk;
    --before.iteration;
    ptx::mbarrier_wait(cta.at.accumulator_full(before.accumulator()), before.accumulator_parity());
  }
};

}  // namespace nvfp4
