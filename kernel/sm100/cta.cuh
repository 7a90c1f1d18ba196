// SPDX-License-Identifier: MIT
// What every role of a CTA of gemm.cu needs: the problem, its tile, its shared memory.
#pragma once

#include <cstdint>

#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"
#include "kernel/tiles.cuh"

namespace nvfp4 {

// tile_of_cta() of tiles.cuh without its divisions.
__device__ inline TileCoordinate tile_of_cta(const Sm100Params& p) {
  const uint32_t weight_row = divide(blockIdx.x, p.by_tiles_m);
  const uint32_t batch = divide(weight_row, p.by_tiles_n);
  return {blockIdx.x - weight_row * p.tiles_m, weight_row - batch * p.tiles_n, batch};
}

// Addresses are 32-bit ones of shared memory.
template <typename Tile>
struct Cta {
  const Sm100Params& p;
  TileCoordinate tile;
  uint32_t smem;      // base of the map in tile.h
  uint32_t k_steps;   // 64-wide steps of K, the last one perhaps cut short
  uint32_t fillings;  // of the ring: ceil(K / 256)

  __device__ uint32_t full(uint32_t stage) const { return smem + Tile::kFullAt + 8 * stage; }
  __device__ uint32_t empty(uint32_t stage) const { return smem + Tile::kEmptyAt + 8 * stage; }
  __device__ uint32_t accumulator_full() const { return smem + Tile::kAccumulatorFullAt; }
  __device__ uint32_t cut_ready() const { return smem + Tile::kCutReadyAt; }
  // The last step has fewer than 64 elements.
  __device__ bool k_is_cut() const { return p.k % kMmaK != 0; }
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
    return min(Tile::kSteps, k_steps - filling * Tile::kSteps);
  }
};

}  // namespace nvfp4
