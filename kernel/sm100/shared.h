// SPDX-License-Identifier: MIT
// Shared memory of the sm_100a kernel: the ring, the staging buffers of a CTA that computes several
// tiles, the list of a grouped product (kernel/common/group_list.h), then the barriers. Plain C++,
// no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nvfp4 {

// Barriers, and the word that tcgen05.alloc writes. `load.cuh` says how many arrivals each counts.
template <uint32_t kStages, bool kSeveralTiles>
struct Sm100Barriers;

// Barriers of a CTA that computes one tile, with or without split-K (split.cuh).
template <uint32_t kStages>
struct Sm100Barriers<kStages, false> {
  uint64_t full[kStages], empty[kStages], accumulator_full[1];
  uint64_t k_tail_ready;
  uint64_t peers_ready, sums[8];
  uint32_t tmem_address, unused;
};

// Barriers of a CTA that computes several tiles: one CTA of a pair (pair.cuh), or of a grouped
// product.
template <uint32_t kStages>
struct Sm100Barriers<kStages, true> {
  uint64_t full[kStages], empty[kStages], accumulator_full[2], accumulator_empty[2];
  uint64_t k_tail_ready, k_tail_full;
  uint32_t tmem_address, unused;
};

// All stages of one operand are contiguous. A stage of weights has the codes and then the scales of
// b, then those of b2, as packed weights have them.
template <typename Tile, uint32_t kStages>
struct Sm100Ring {
  uint8_t weights[kStages][Tile::kMatrices * Tile::kMatrixBytes];
  uint8_t tokens[kStages][Tile::kTokenBytes];
  uint8_t token_scales[kStages][Tile::kTokenScaleBytes];
};

}  // namespace nvfp4
