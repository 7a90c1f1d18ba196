// SPDX-License-Identifier: MIT
// The warps of gemm_sm90.cu that fill the rings: weights, and tokens from the workspace or decoded here.
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "pipeline.cuh"
#include "ptx_mbarrier.cuh"
#include "ptx_sync.cuh"
#include "ptx_tma.cuh"
#include "tokens_sm90.cuh"

namespace nvfp4 {

// ---- Weight warp -------------------------------------------------------------------------------

template <typename Tile>
__device__ void init_barriers(const Cta90<Tile>& cta) {
  for (uint32_t i = 0; i < Tile::kStages; ++i) {
    ptx::mbarrier_init(cta.weights_full(i), 1);
    ptx::mbarrier_init(cta.weights_empty(i), Tile::kConsumerWarps);
  }
  for (uint32_t i = 0; i < Tile::kSlots; ++i) {
    ptx::mbarrier_init(cta.tokens_full(i), Tile::kTokenWarps);
    ptx::mbarrier_init(cta.tokens_empty(i), Tile::kConsumerWarps);
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

// Before anything else happens in the CTA. With tokens in the workspace the earlier grid is
// nvfp4_tokens_sm90, which lets this one start only when weights may be read.
template <typename Tile>
__device__ void load_first_weights(const Cta90<Tile>& cta) {
  if (Tile::kDecodesTokens && cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
#pragma unroll
  for (uint32_t i = 0; i < Tile::kStages; ++i) {
    if (i < cta.count) load_weights(cta, i, i);
  }
}

template <typename Tile>
__device__ void load_remaining_weights(const Cta90<Tile>& cta) {
  RingPosition<Tile::kStages> at;
  for (uint32_t i = Tile::kStages; i < cta.count; ++i, at.advance()) {
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

// The pieces of one stage that this thread decodes.
template <typename Tile>
struct TokenWork {
  static constexpr uint32_t kThreads = 32 * Tile::kTokenWarps;
  static constexpr uint32_t kPieces = Tile::kTokens * kPiecesPerStage / kThreads;
  TokenPiece piece[kPieces];
};

template <typename Tile>
__device__ void load_work(const Cta90<Tile>& cta, uint32_t i, uint32_t thread,
                          TokenWork<Tile>& work) {
#pragma unroll
  for (uint32_t q = 0; q < work.kPieces; ++q) {
    const uint32_t index = q * work.kThreads + thread;
    work.piece[q] = load_token_piece(cta.p, cta.tile.batch,
                                     cta.tile.token_tile * Tile::kTokens + index / kPiecesPerStage,
                                     cta.stage_begin + i, index % kPiecesPerStage);
  }
}

template <typename Tile>
__device__ void write_work(uint32_t slot, uint32_t thread, const TokenWork<Tile>& work) {
#pragma unroll
  for (uint32_t q = 0; q < work.kPieces; ++q) {
    const uint32_t index = q * work.kThreads + thread;
    const uint32_t row = index / kPiecesPerStage, j = index % kPiecesPerStage;
    uint4 chunks[4];
    decode_token_piece(work.piece[q], chunks);
    const uint32_t out = slot + j / 2 * Tile::kSlabBytes + row * kTokenRowBytes;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      ptx::st_shared_v4_b32(out + chunk_offset(row, j, i), chunks[i]);
    }
  }
}

// Loads run ahead of the slot that is written: one takes longer than a stage.
template <typename Tile>
__device__ void decode_tokens(const Cta90<Tile>& cta, uint32_t thread) {
  static_assert(Tile::kSlotSteps == Tile::kSteps, "a slot is a stage");
  constexpr uint32_t kAhead = 2;
  TokenWork<Tile> work[kAhead];
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) {
    if (i < cta.count) load_work(cta, i, thread, work[i]);
  }
  RingPosition<Tile::kSlots> at;
  for (uint32_t first = 0; first < cta.count; first += kAhead) {
#pragma unroll
    for (uint32_t next = 0; next < kAhead; ++next) {
      const uint32_t i = first + next;
      if (i >= cta.count) break;
      wait_for_slot(cta, at);
      write_work<Tile>(cta.tokens(at.stage), thread, work[next]);
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (thread % 32 == 0) ptx::mbarrier_arrive(cta.tokens_full(at.stage));
      if (i + kAhead < cta.count) load_work(cta, i + kAhead, thread, work[next]);
      at.advance();
    }
  }
}

}  // namespace nvfp4
