// SPDX-License-Identifier: MIT
// The K partition of a CTA.
#pragma once

#include <cstdint>

#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

// A K partition: `k_blocks` k-blocks from `first` on. The functions number k-blocks from 0, which
// is the first one of the partition.
template <typename Tile>
struct KPartition {
  uint32_t k;        // elements of the whole K
  uint32_t k_steps;  // steps of 64; the last one may end early
  uint32_t first, k_blocks;

  // Steps in a k-block: 4, or fewer in the last one.
  __device__ uint32_t steps(uint32_t k_block) const {
    return min(Tile::kSteps, k_steps - (first + k_block) * Tile::kSteps);
  }
  // Number of k-blocks with four whole steps.
  __device__ uint32_t complete() const { return min(k_blocks, k / Tile::kK - first); }
  // First byte of the k-block in a row of codes.
  __device__ uint32_t first_byte(uint32_t k_block) const {
    return (first + k_block) * (Tile::kK / 2);
  }
  __device__ uint32_t first_step(uint32_t k_block) const {
    return (first + k_block) * Tile::kSteps;
  }
};

// Number of scale tiles for that many steps of 64.
__device__ inline uint32_t scale_tiles(const Sm100Params& p, uint32_t steps) {
  const uint32_t shift = p.log2_steps_per_scale_tile;
  return (steps + shift) >> shift;
}

template <typename Tile>
__device__ KPartition<Tile> all_of_k(const Sm100Params& p) {
  const uint32_t k_steps = (p.k + kMmaK - 1) / kMmaK;
  return {p.k, k_steps, 0, (k_steps + Tile::kSteps - 1) / Tile::kSteps};
}

__device__ inline uint32_t log2_of_split(uint32_t split) { return split / 2; }  // for 1, 2 or 4

// The CTAs of a cluster take consecutive partitions. If the k-blocks do not divide evenly, the
// first CTAs take one more.
template <typename Tile>
__device__ KPartition<Tile> k_partition(const Sm100Params& p, uint32_t rank) {
  const KPartition<Tile> all = all_of_k<Tile>(p);
  const uint32_t base = all.k_blocks >> log2_of_split(p.split);
  const uint32_t more = all.k_blocks & (p.split - 1);
  return {all.k, all.k_steps, rank * base + min(rank, more), base + (rank < more ? 1 : 0)};
}

}  // namespace nvfp4
