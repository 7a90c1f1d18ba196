// SPDX-License-Identifier: MIT
// The warps of gemm_sm90.cu that fill the rings: weights, and tokens from the workspace.
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "pipeline.cuh"
#include "ptx_mbarrier.cuh"
#include "ptx_sync.cuh"
#include "ptx_tma.cuh"

namespace nvfp4 {

// ---- Weight warp -------------------------------------------------------------------------------

// token_passes: arrivals per stage of the warps that decode tokens into it.
template <typename Tile>
__device__ void init_barriers(const Cta90<Tile>& cta, uint32_t token_passes) {
  for (uint32_t i = 0; i < Tile::kStages; ++i) {
    ptx::mbarrier_init(cta.weights_full(i), 1 + token_passes);
    ptx::mbarrier_init(cta.weights_empty(i), Tile::kConsumersPerStage);
  }
  if constexpr (Tile::kWorkspaceTokens) {
    for (uint32_t i = 0; i < Tile::kSlots; ++i) {
      ptx::mbarrier_init(cta.tokens_full(i), 1);
      ptx::mbarrier_init(cta.tokens_empty(i), Tile::kConsumerWarps);
    }
  }
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();  // this thread's own TMA loads signal them next
}

template <typename Tile>
__device__ void load_weights(const Cta90<Tile>& cta, uint32_t i, uint32_t at) {
  const GemmParams& p = cta.p;
  const uint32_t bar = cta.weights_full(at);
  const uint32_t stage = cta.stage_begin + i;
  const uint32_t scale_bytes = cta.steps(i) * kScaleTileBytes;
  const uint64_t tile =
      static_cast<uint64_t>(cta.tile.weight_tile) * cta.k_steps + stage * Tile::kSteps;
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kWeightBytes + scale_bytes);
  ptx::cp_async_bulk_tensor_3d(cta.weights(at), &p.weights, stage * (Tile::kK / 2),
                               cta.tile.weight_tile * Tile::kWeights, cta.tile.batch, bar,
                               ptx::kEvictFirst);
  ptx::cp_async_bulk(
      cta.scales(at),
      p.weight_scales + cta.tile.batch * p.weight_scales_batch_bytes + tile * kScaleTileBytes,
      scale_bytes, bar, ptx::kEvictFirst);
}

// Stages that are asked for beyond those that have arrived. All of a ring at once would be nine
// stages of 112 CTAs, of which memory brings the last as soon as the first: 4 us in which nothing is
// multiplied (H200, one token, 2026-11-21: 24.5 us with 9 of them, 21.9 with 3; 28.6 with 1).
constexpr uint32_t kWeightStagesAhead = 2;

// Before anything else happens in the CTA. With tokens in the workspace the earlier grid is
// nvfp4_tokens_sm90, which lets this one start only when weights may be read.
template <typename Tile>
__device__ void load_first_weights(const Cta90<Tile>& cta) {
  static_assert(kWeightStagesAhead < Tile::kStages);
  if (!Tile::kWorkspaceTokens && cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
#pragma unroll
  for (uint32_t i = 0; i < kWeightStagesAhead; ++i) {
    if (i < cta.count) load_weights(cta, i, i);
  }
}

template <typename Tile>
__device__ void load_remaining_weights(const Cta90<Tile>& cta) {
  RingPosition<Tile::kStages> arrived, at;
  at.stage = kWeightStagesAhead;
  at.parity = 1;  // the first round finds every stage empty
  for (uint32_t i = kWeightStagesAhead; i < cta.count; ++i, arrived.advance(), at.advance()) {
    ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
    ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
    load_weights(cta, i, at.stage);
  }
}

// ---- Token warps -------------------------------------------------------------------------------

// The n-th round through the ring waits for phase n - 1 of the slot; the first for none.
template <typename Tile>
__device__ void wait_for_slot(const Cta90<Tile>& cta, const RingPosition<Tile::kSlots>& at) {
  ptx::mbarrier_wait(cta.tokens_empty(at.stage), at.parity ^ 1);
}

template <typename Tile>
__device__ void load_tokens(const Cta90<Tile>& cta) {
  const GemmParams& p = cta.p;
  constexpr uint32_t kSlotsPerStage = Tile::kSteps / Tile::kSlotSteps;
  const uint32_t stages = (cta.k_steps + Tile::kSteps - 1) / Tile::kSteps;
  const uint64_t slab_bytes = static_cast<uint64_t>(p.m_padded) * kTokenRowBytes;
  const uint8_t* from = static_cast<const uint8_t*>(p.token_slabs) +
                        (static_cast<uint64_t>(cta.tile.batch) * stages + cta.stage_begin) *
                            Tile::kSteps * slab_bytes +
                        static_cast<uint64_t>(cta.tile.token_tile) * Tile::kSlabBytes;
  RingPosition<Tile::kSlots> at;
  for (uint32_t i = 0; i < cta.count * kSlotsPerStage; ++i, at.advance()) {
    wait_for_slot(cta, at);
    ptx::mbarrier_arrive_expect_tx(cta.tokens_full(at.stage), Tile::kSlotBytes);
#pragma unroll
    for (uint32_t slab = 0; slab < Tile::kSlotSteps; ++slab, from += slab_bytes) {
      ptx::cp_async_bulk(cta.tokens(at.stage) + slab * Tile::kSlabBytes, from, Tile::kSlabBytes,
                         cta.tokens_full(at.stage), ptx::kEvictLast);
    }
  }
}

}  // namespace nvfp4
