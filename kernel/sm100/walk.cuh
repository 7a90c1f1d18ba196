// SPDX-License-Identifier: MIT
// Which tiles a CTA computes, one after the other, and where in the ring each one begins.
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/common/tiles.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

// Same as tile_at() of tiles.cuh, with precomputed divisors.
__device__ inline TileCoordinate tile_at(const Sm100Params& p, uint32_t index) {
  const uint32_t weight_row = divide(index, p.by_tiles_m);
  const uint32_t batch = divide(weight_row, p.by_tiles_n);
  return {index - weight_row * p.tiles_m, weight_row - batch * p.tiles_n, batch};
}

// Pairs that run at the same time share both weights and tokens. The grid covers all weights of a
// group of token tiles before it goes to the next group, so that the tokens of a group stay in L2.
__device__ inline TileCoordinate tile_in_group(const Sm100Params& p, uint32_t index) {
  const uint32_t batch = divide(index, p.by_batch);
  const uint32_t of_batch = index - batch * p.tiles_m * p.tiles_n;
  const uint32_t first = divide(of_batch, p.by_group) * kTokenGroup;
  const uint32_t of_group = of_batch - first * p.tiles_n;
  const bool last = p.tiles_m - first < kTokenGroup;
  const uint32_t height = last ? p.tiles_m - first : kTokenGroup;
  const uint32_t weight = last ? divide(of_group, p.by_last_group) : of_group / kTokenGroup;
  return {first + of_group - weight * height, weight, batch};
}

template <typename Tile>
__device__ TileCoordinate tile_of(const Sm100Params& p, uint32_t index) {
  if constexpr (Tile::kCtas == 2) return tile_in_group(p, index);
  return tile_at(p, index);
}

// A pair computes every P-th tile, P being the number of pairs, and so does a CTA of a grouped
// product. Any other CTA has one tile. Each role walks on its own copy.
template <typename Tile>
struct Walk {
  TileCoordinate tile;
  uint32_t k_blocks;                       // k-blocks of each tile
  uint32_t iteration = 0;                  // index of the current tile among those of this CTA
  uint32_t iterations = 1;                 // number of tiles of this CTA
  RingPosition<Tile::kStages> begin = {};  // position of the tile's first k-block

  // Moves to the next tile, whose coordinates the caller sets; false after the last one.
  __device__ bool go_on() {
    if constexpr (!Tile::kSeveralTiles) return false;
    if (++iteration == iterations) return false;
    begin = position(k_blocks);
    return true;
  }
  // Index of the current tile among those of the grid.
  __device__ uint32_t index() const { return (blockIdx.x + iteration * gridDim.x) / Tile::kCtas; }
  // Ring position and phase of full[s] for a k-block of this tile, or for the one after its last.
  __device__ RingPosition<Tile::kStages> position(uint32_t k_block) const {
    const uint32_t all = begin.stage + k_block;
    return {all % Tile::kStages, begin.parity ^ (all / Tile::kStages % 2)};
  }
  // Whether the stage of that k-block is filled again, if only by a later tile.
  __device__ bool is_refilled(uint32_t k_block) const {
    if constexpr (!Tile::kSeveralTiles) return k_block + Tile::kStages < k_blocks;
    return k_block + Tile::kStages < uint64_t{iterations - iteration} * k_blocks;
  }
  // Tiles alternate between the accumulators. Each accumulator has its own barriers, whose phases
  // count its tiles.
  __device__ uint32_t accumulator() const { return iteration % Tile::kAccumulators; }
  __device__ uint32_t accumulator_parity() const { return iteration / Tile::kAccumulators % 2; }
  __device__ uint32_t accumulator_at() const { return accumulator() * Tile::kSecondAt; }
  // Whether a later tile waits until this tile's accumulator, or its shared columns, have been
  // read.
  __device__ bool accumulator_is_used_again() const {
    return iteration + Tile::kReleasingIterations < iterations;
  }
};

// How many of the grid's tiles this pair, or this CTA, computes.
template <typename Tile>
__device__ uint32_t iterations_of(uint32_t tiles) {
  const uint32_t unit = blockIdx.x / Tile::kCtas, units = gridDim.x / Tile::kCtas;
  return unit < tiles ? (tiles - unit + units - 1) / units : 0;
}

}  // namespace nvfp4
