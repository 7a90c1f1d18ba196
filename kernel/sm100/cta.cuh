// SPDX-License-Identifier: MIT
// What every role of a CTA of gemm.cu needs: the problem, its tile, its shared memory.
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"
#include "kernel/common/tiles.cuh"

namespace nvfp4 {

// tile_at() of tiles.cuh without its divisions.
__device__ inline TileCoordinate tile_at(const Sm100Params& p, uint32_t index) {
  const uint32_t weight_row = divide(index, p.by_tiles_m);
  const uint32_t batch = divide(weight_row, p.by_tiles_n);
  return {index - weight_row * p.tiles_m, weight_row - batch * p.tiles_n, batch};
}

// What a CTA has of K: fillings of the ring from `first` on, `count` of them. The CTAs of a cluster
// take consecutive parts, the earlier ones a filling more where they do not divide. A cluster lies
// along x, so a CTA's rank in it follows from its index.
struct PartOfK {
  uint32_t rank, first, count;
};
__device__ inline uint32_t log2_of_split(uint32_t split) { return split / 2; }  // of 1, 2 or 4
__device__ inline PartOfK part_of_cta(const Sm100Params& p, uint32_t fillings) {
  const uint32_t rank = blockIdx.x & (p.split - 1);
  const uint32_t base = fillings >> log2_of_split(p.split), more = fillings & (p.split - 1);
  return {rank, rank * base + min(rank, more), base + (rank < more ? 1 : 0)};
}

// Addresses are 32-bit ones of shared memory.
template <typename Tile>
struct Cta {
  const Sm100Params& p;
  TileCoordinate tile;
  uint32_t smem;       // base of the map in tile.h
  uint32_t k_steps;    // 64-wide steps of K, the last one perhaps cut short
  uint32_t rank;       // in its cluster: of its part of K, or in its pair
  uint32_t first;      // filling of its part
  uint32_t fillings;   // of the ring, by a tile of this CTA: counted from 0 wherever one is named
  uint32_t turn = 0;   // of its tiles, which one this is
  uint32_t turns = 1;  // how many it has
  RingPosition<Tile::kStages> begin = {};  // of the tile's first filling

  static constexpr bool kIsPair = Tile::kCtas == 2;

  // Each role goes from tile to tile by itself, with a Cta of its own. False after the last one.
  __device__ bool go_on() {
    if constexpr (Tile::kSeveralTiles) {
      if (++turn == turns) return false;
      begin = position(fillings);
      tile = tile_at(p, (blockIdx.x + turn * gridDim.x) / Tile::kCtas);
      return true;
    }
    return false;
  }
  // Of the ring, and of full[s], for a filling of this tile, or for the one after its last.
  __device__ RingPosition<Tile::kStages> position(uint32_t filling) const {
    const uint32_t all = begin.stage + filling;
    return {all % Tile::kStages, begin.parity ^ (all / Tile::kStages % 2)};
  }
  // Is the stage of that filling filled again, if only by a later tile?
  __device__ bool is_refilled(uint32_t filling) const {
    if constexpr (!Tile::kSeveralTiles) return filling + Tile::kStages < fillings;
    return filling + Tile::kStages < uint64_t{turns - turn} * fillings;
  }

  // Of its 128.
  __device__ uint32_t first_weight() const {
    return tile.weight_tile * Tile::kWeights + (kIsPair ? rank * Tile::kCtaWeights : 0);
  }
  __device__ uint32_t full(uint32_t stage) const { return smem + Tile::kFullAt + 8 * stage; }
  __device__ uint32_t empty(uint32_t stage) const { return smem + Tile::kEmptyAt + 8 * stage; }
  // Tiles take the accumulators in turn. Each has its own barriers, whose phases count its tiles.
  __device__ uint32_t accumulator() const { return turn % Tile::kAccumulators; }
  __device__ uint32_t accumulator_parity() const { return turn / Tile::kAccumulators % 2; }
  __device__ bool accumulator_is_used_again() const { return turn + Tile::kAccumulators < turns; }
  __device__ uint32_t accumulator_full() const {
    return smem + (accumulator() == 0 ? Tile::kAccumulatorFullAt : Tile::kAccumulatorFull1At);
  }
  // The leader's counts, of the warps that store, of both CTAs.
  __device__ uint32_t accumulator_empty() const {
    return smem + Tile::kAccumulatorEmptyAt + 8 * accumulator();
  }
  // Of the odd CTA of a pair: the bytes of a tile's last filling, if K is cut.
  __device__ uint32_t cut_full() const { return smem + Tile::kCutFullAt; }
  __device__ uint32_t cut_ready() const { return smem + Tile::kCutReadyAt; }
  __device__ uint32_t peers_ready() const { return smem + Tile::kPeersReadyAt; }
  __device__ uint32_t sums(uint32_t band) const { return smem + Tile::kSumsAt + 8 * band; }
  __device__ bool shares_tile() const { return Tile::kMaxSplit > 1 && p.split > 1; }
  __device__ bool in_cluster() const { return kIsPair || shares_tile(); }
  // The CTA whose threads issue copies of scales and MMAs, for both of a pair: the even one, as in
  // all kernels known to run.
  __device__ bool leads() const { return !kIsPair || rank == 0; }
  // This CTA's last step has fewer than 64 elements.
  __device__ bool k_is_cut() const { return p.k % kMmaK != 0 && (kIsPair || rank + 1 == p.split); }
  __device__ bool is_cut(uint32_t filling) const { return k_is_cut() && filling + 1 == fillings; }
  __device__ uint32_t weights(uint32_t stage) const {
    return smem + Tile::kWeightsAt + stage * Tile::kWeightBytes;
  }
  __device__ uint32_t tokens(uint32_t stage) const {
    return smem + Tile::kTokensAt + stage * Tile::kTokenBytes;
  }
  __device__ uint32_t weight_scales(uint32_t stage) const {
    return smem + Tile::kWeightScalesAt + stage * Tile::kWeightScaleBytes;
  }
  __device__ uint32_t token_scales(uint32_t stage) const {
    return smem + Tile::kTokenScalesAt + stage * Tile::kTokenScaleBytes;
  }
  // 64-steps in a filling: 4, fewer in the last one.
  __device__ uint32_t steps(uint32_t filling) const {
    return min(Tile::kSteps, k_steps - (first + filling) * Tile::kSteps);
  }
  // Fillings of four whole steps.
  __device__ uint32_t complete() const { return min(fillings, p.k / Tile::kK - first); }
};

}  // namespace nvfp4
