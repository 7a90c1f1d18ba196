// SPDX-License-Identifier: MIT
// The last filling of a K that is no multiple of 64: the TMA warp, which has nothing left to load,
// clears the scales beyond K of both operands, and the MMA thread waits for that, there alone.
#pragma once

#include <cstdint>

#include "kernel/common/cut_scales.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/sm100/cta.cuh"

namespace nvfp4 {

// What its clearing told has been seen then, so cut_ready is never two phases ahead of the wait.
template <typename Tile>
__device__ void wait_for_tile_before(Cta<Tile> cta) {
  --cta.turn;
  ptx::mbarrier_wait(cta.accumulator_full(), cta.accumulator_parity());
}

// By all lanes, after the tile's last load has been issued: it was asked for when the stage's phase
// before was over, so the wait cannot take that one for its own.
template <typename Tile>
__device__ void clear_last_scales(const Cta<Tile>& cta, uint32_t lane) {
  const uint32_t filling = cta.fillings - 1;
  const auto at = cta.position(filling);
  const uint32_t from = (cta.steps(filling) - 1) * kScaleTileBytes + scale_lane(lane);
  if (cta.turn > 0) wait_for_tile_before(cta);
  if (cta.leads()) {
    ptx::mbarrier_wait(cta.full(at.stage), at.parity);
  } else {
    ptx::mbarrier_wait(cta.cut_full(), cta.turn % 2);
  }
  clear_scales_beyond_k(cta.weight_scales(at.stage) + from, cta.p.k);
  for (uint32_t i = 0; i < Tile::kTokenScaleBlocks; ++i) {
    const uint32_t block_at = i * Tile::kSteps * kScaleTileBytes;
    clear_scales_beyond_k(cta.token_scales(at.stage) + block_at + from, cta.p.k);
  }
  ptx::fence_proxy_async_shared_cta();  // tcgen05.cp reads them next
  if constexpr (Tile::kCtas == 2) {
    ptx::mbarrier_arrive_cluster(ptx::mapa(cta.cut_ready(), 0));
  } else {
    ptx::mbarrier_arrive(cta.cut_ready());
  }
}

}  // namespace nvfp4
