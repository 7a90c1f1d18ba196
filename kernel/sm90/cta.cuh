// SPDX-License-Identifier: MIT
// What every role of a CTA of gemm.cu needs: its tile, its part of K, its shared memory.
#pragma once

#include <cstdint>

#include "kernel/clocks.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/tile.h"
#include "kernel/tiles.cuh"

namespace nvfp4 {

// Named barriers of a CTA; 0 is that of all threads.
constexpr uint32_t kConsumerBarrier = 1, kInitBarrier = 2, kClearBarrier = 3;

// Of a tile's tokens, those that each of `split` CTAs stores; the last ones may have fewer.
__device__ constexpr uint32_t share_of(uint32_t tokens, uint32_t split) {
  return (tokens + split - 1) / split;
}

// Addresses are 32-bit ones of shared memory.
template <typename Tile>
struct Cta90 {
  const Sm90Params& p;
  uint32_t smem;  // base of the map in tile.h
  uint32_t rank;  // in the cluster
  TileCoordinate tile;
  uint32_t k_steps;             // 64-wide steps of all of K, the last one perhaps cut short
  uint32_t stage_begin, count;  // this CTA's stages
  uint32_t cut_parity = 0;      // of the phase of cut_full in this tile

  __device__ uint32_t weights_full(uint32_t i) const { return smem + Tile::kWeightsFullAt + 8 * i; }
  __device__ uint32_t weights_empty(uint32_t i) const {
    return smem + Tile::kWeightsEmptyAt + 8 * i;
  }
  __device__ uint32_t tokens_full(uint32_t i) const { return smem + Tile::kTokensFullAt + 8 * i; }
  __device__ uint32_t tokens_empty(uint32_t i) const { return smem + Tile::kTokensEmptyAt + 8 * i; }
  __device__ uint32_t sums_full() const { return smem + Tile::kSumsFullAt; }
  __device__ uint32_t cut_full() const { return smem + Tile::kCutFullAt; }
  __device__ uint32_t weights(uint32_t i) const {
    return smem + Tile::kWeightsAt + i * Tile::kWeightBytes;
  }
  __device__ uint32_t scales(uint32_t i) const {
    return smem + Tile::kScalesAt + i * Tile::kScaleBytes;
  }
  __device__ uint32_t tokens(uint32_t i) const {
    return smem + Tile::kTokensAt + i * Tile::kSlotBytes;
  }
  // The tile's tokens that this CTA of a cluster stores.
  __device__ uint32_t own_tokens() const {
    const uint32_t share = share_of(Tile::kTokens, p.split);
    return min(share, Tile::kTokens - min(rank * share, Tile::kTokens));
  }
  // 64-steps of K in this CTA's i-th stage: 4, fewer in the last one.
  __device__ uint32_t steps(uint32_t i) const {
    return min(Tile::kSteps, k_steps - (stage_begin + i) * Tile::kSteps);
  }
};

// tile_at without its divisions where there is nothing to divide: the first byte waits for it.
__device__ inline TileCoordinate tile_of_cluster(const Sm90Params& p) {
  const uint32_t index = ptx::clusterid_x();
  if (p.tiles_m == 1 && index < p.tiles_n) return {0, index, 0};
  return tile_at(p, index);
}

// The tiles of a CTA: the first, and as long as there are any every gridDim.x-th from there. A grid
// has a CTA for each SM (host/plan/plan.cc), or for each tile. Where other work keeps an SM, the
// CTA that waits for it has all of its tiles still before it.
template <typename Tile>
struct Tiles {
  uint32_t index = ptx::clusterid_x();

  __device__ bool next(const Sm90Params& p) {
    if (!Tile::kSeveralTiles || p.split > 1) return false;
    index += gridDim.x;
    return index < p.tiles_m * p.tiles_n * p.batches;
  }
};

// Consumers have found stage i full. No branch remains of it without CLOCKS.
template <typename Tile>
__device__ void note_stage(const Cta90<Tile>& cta, uint32_t i) {
  if (i == 0 && threadIdx.x == 0) note_clock(kClock_first_full);
  if (i + 1 == cta.count && threadIdx.x % 32 == 0) note_last_clock(kClock_last_full);
}

template <typename Tile>
__device__ Cta90<Tile> make_cta(const Sm90Params& p, uint32_t smem) {
  const uint32_t rank = ptx::cluster_ctarank();
  const uint32_t k_steps = (p.k + kScaleTileK - 1) / kScaleTileK;
  const uint32_t stages = (k_steps + Tile::kSteps - 1) / Tile::kSteps;
  // A power of two, or 3.
  const uint32_t each = p.split == 3 ? stages / 3 : stages >> (31 - __clz(p.split));
  const uint32_t more = stages - each * p.split;
  return {p,
          smem,
          rank,
          tile_of_cluster(p),
          k_steps,
          rank * each + min(rank, more),
          each + (rank < more ? 1 : 0)};
}

}  // namespace nvfp4
