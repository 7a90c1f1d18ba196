// SPDX-License-Identifier: MIT
// Shared-memory addresses of a CTA: 32-bit addresses of the members of shared.h's structs.
#pragma once

#include <cstdint>

#include "kernel/common/offset.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

template <typename Tile>
struct Addresses {
  using Ring = typename Tile::Ring;
  using Barriers = typename Tile::Barriers;
  static_assert(sizeof(Ring) == Tile::kStagingAt, "stages without gaps");

  uint32_t smem;  // first byte of the CTA's shared memory

  __device__ uint32_t weights(uint32_t stage) const {
    return smem + NVFP4_OFFSET_OF(Ring, weights) + stage * sizeof(Ring::weights[0]);
  }
  __device__ uint32_t tokens(uint32_t stage) const {
    return smem + NVFP4_OFFSET_OF(Ring, tokens) + stage * Tile::kTokenBytes;
  }
  __device__ uint32_t weight_scales(uint32_t stage) const {
    return weights(stage) + Tile::kWeightBytes;
  }
  __device__ uint32_t token_scales(uint32_t stage) const {
    return smem + NVFP4_OFFSET_OF(Ring, token_scales) + stage * Tile::kTokenScaleBytes;
  }

  __device__ uint32_t list() const { return smem + Tile::kListAt; }

  __device__ uint32_t full(uint32_t stage) const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, full) + 8 * stage;
  }
  __device__ uint32_t empty(uint32_t stage) const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, empty) + 8 * stage;
  }
  __device__ uint32_t accumulator_full(uint32_t accumulator) const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, accumulator_full) + 8 * accumulator;
  }
  // The barrier of the leader in a pair. It counts the warps of both CTAs that have read the
  // accumulator.
  __device__ uint32_t accumulator_empty(uint32_t accumulator) const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, accumulator_empty) + 8 * accumulator;
  }
  // Counts the lanes that have cleared scales beyond K, in both CTAs of a pair.
  __device__ uint32_t k_tail_ready() const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, k_tail_ready);
  }
  // Counts the bytes of the last k-block in the odd CTA of a pair, if that k-block has a K tail.
  __device__ uint32_t k_tail_full() const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, k_tail_full);
  }
  __device__ uint32_t peers_ready() const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, peers_ready);
  }
  __device__ uint32_t sums(uint32_t epilogue_warp) const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, sums) + 8 * epilogue_warp;
  }
  __device__ uint32_t tmem_address() const {
    return barriers() + NVFP4_OFFSET_OF(Barriers, tmem_address);
  }

 private:
  __device__ uint32_t barriers() const { return smem + Tile::kBarriersAt; }
};

}  // namespace nvfp4
