// SPDX-License-Identifier: MIT
// What a CTA has of K.
#pragma once

#include <cstdint>

#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

// Fillings of the ring, `fillings` of them from `first` on. Wherever one is named it is counted
// from 0, the first one of the part.
template <typename Tile>
struct PartOfK {
  uint32_t k;        // elements, of the whole of it
  uint32_t k_steps;  // 64-wide steps, the last one perhaps cut short
  uint32_t first, fillings;

  // 64-steps in a filling: 4, fewer in the last one.
  __device__ uint32_t steps(uint32_t filling) const {
    return min(Tile::kSteps, k_steps - (first + filling) * Tile::kSteps);
  }
  // Fillings of four whole steps.
  __device__ uint32_t complete() const { return min(fillings, k / Tile::kK - first); }
  // Where the filling begins in a row of codes.
  __device__ uint32_t first_byte(uint32_t filling) const {
    return (first + filling) * (Tile::kK / 2);
  }
  __device__ uint32_t first_step(uint32_t filling) const {
    return (first + filling) * Tile::kSteps;
  }
};

// Tiles that the scales of so many 64-steps take.
__device__ inline uint32_t scale_tiles(const Sm100Params& p, uint32_t steps) {
  const uint32_t shift = p.log2_steps_per_scale_tile;
  return (steps + shift) >> shift;
}

template <typename Tile>
__device__ PartOfK<Tile> all_of_k(const Sm100Params& p) {
  const uint32_t k_steps = (p.k + kMmaK - 1) / kMmaK;
  return {p.k, k_steps, 0, (k_steps + Tile::kSteps - 1) / Tile::kSteps};
}

__device__ inline uint32_t log2_of_split(uint32_t split) { return split / 2; }  // of 1, 2 or 4

// The CTAs of a cluster take consecutive parts, the earlier ones a filling more where they do not
// divide.
template <typename Tile>
__device__ PartOfK<Tile> part_of_k(const Sm100Params& p, uint32_t rank) {
  const PartOfK<Tile> all = all_of_k<Tile>(p);
  const uint32_t base = all.fillings >> log2_of_split(p.split);
  const uint32_t more = all.fillings & (p.split - 1);
  return {all.k, all.k_steps, rank * base + min(rank, more), base + (rank < more ? 1 : 0)};
}

}  // namespace nvfp4
