// SPDX-License-Identifier: MIT
// The part of a product that a CTA computes, and its shared memory.
#pragma once

#include <cstdint>

#include "kernel/common/tiles.cuh"
#include "kernel/sm120/params.h"
#include "kernel/sm120/tile.h"

namespace nvfp4 {

// CTAs that run at the same time share both weights and tokens: the grid covers all weights of a
// group of token tiles, tokens fastest, before it goes to the next group. So the tokens of a group
// stay in L2, and each weight comes from DRAM once per group.
__device__ inline TileCoordinate sm120_tile_at(const Sm120Params& p, uint32_t index) {
  if (p.tiles_m == 1 && index < p.tiles_n) return {0, index, 0};
  const uint32_t of_batch = p.tiles_m * p.tiles_n;
  const uint32_t batch = index / of_batch;
  const uint32_t in_batch = index - batch * of_batch;
  const uint32_t of_group = min(p.tiles_m, kSm120TokenGroup) * p.tiles_n;
  const uint32_t group = in_batch / of_group;
  const uint32_t in_group = in_batch - group * of_group;
  const uint32_t first = group * kSm120TokenGroup;
  const uint32_t height = min(p.tiles_m - first, kSm120TokenGroup);
  const uint32_t weight = in_group / height;
  return {first + in_group - weight * height, weight, batch};
}

// Addresses are 32-bit shared-memory addresses.
template <typename Tile>
struct Sm120Cta {
  const Sm120Params& p;
  uint32_t smem;
  uint32_t rank;                 // of its K partition
  uint32_t batch, m, n;          // first token and first weight of the tile
  uint32_t first_block, blocks;  // k-blocks of the partition

  __device__ Sm120Cta(const Sm120Params& params, uint32_t shared) : p(params), smem(shared) {
    const uint32_t tile = p.split == 1 ? blockIdx.x : blockIdx.x / p.split;
    rank = blockIdx.x - tile * p.split;
    const TileCoordinate at = sm120_tile_at(p, tile);
    batch = at.batch;
    m = at.token_tile * Tile::kTokens;
    n = at.weight_tile * Tile::kWeights;
    take_partition();
  }

  // If the units of 256 do not divide evenly, the first partitions have one more.
  __device__ void take_partition() {
    constexpr uint32_t kBlocks = kSm120UnitK / Tile::kK;  // in a unit
    const uint32_t all = (p.k + kSm120UnitK - 1) / kSm120UnitK;
    const uint32_t each = p.split == 1 ? all : all / p.split;
    const uint32_t more = all - each * p.split;
    first_block = (rank * each + min(rank, more)) * kBlocks;
    blocks = min((each + (rank < more)) * kBlocks, (p.k + Tile::kK - 1) / Tile::kK - first_block);
  }

  // Elements of K from the i-th k-block on, and the steps of 64 in it.
  __device__ uint32_t elements(uint32_t i) const { return p.k - (first_block + i) * Tile::kK; }
  __device__ uint32_t steps(uint32_t i) const {
    return min((elements(i) + kScaleTileK - 1) / kScaleTileK, Tile::kSteps);
  }
  __device__ bool has_linear_scales() const {
    return p.weight_scales_linear != 0 || p.token_scales_linear != 0;
  }

  __device__ uint32_t stage(uint32_t s) const { return smem + s * Tile::kStageBytes; }
  __device__ uint32_t full(uint32_t s) const { return smem + Tile::kFullAt + 8 * s; }
  __device__ uint32_t empty(uint32_t s) const { return smem + Tile::kEmptyAt + 8 * s; }
};

// Offset in a step's scales of a stage of the word of the tile's row `row`, which is row `in_tile`
// of a scale tile. kLanes of that tile are there, from that of the tile's first row on.
template <uint32_t kLanes>
__device__ uint32_t scale_word_at(uint32_t in_tile) {
  return scale_lane(in_tile) % (kLanes * 16) + scale_band(in_tile);
}

}  // namespace nvfp4
