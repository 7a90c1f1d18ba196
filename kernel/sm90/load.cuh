// SPDX-License-Identifier: MIT
// The warps of gemm.cu that fill the rings: weights, and tokens from the workspace or from A.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/k_tail_scales.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/gated.cuh"

namespace nvfp4 {

// ---- Weight warp -------------------------------------------------------------------------------

// All lanes of the warp copy linear scales (linear_scales.cuh).
template <typename Tile>
__device__ uint32_t weight_arrivals(const Cta90<Tile>& cta) {
  return Tile::kWeightArrivals + (has_linear_weight_scales<Tile>(cta.p) ? 32 : 0);
}

// The consumers of a stage release it lane by lane, each for what it has read.
template <typename Tile>
__device__ void init_stage_barriers(const Cta90<Tile>& cta, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i) {
    ptx::mbarrier_init(cta.weights_full(i), weight_arrivals(cta));
    ptx::mbarrier_init(cta.weights_empty(i), 32 * Tile::kConsumersPerStage);
  }
}

template <typename Tile>
__device__ void init_other_barriers(const Cta90<Tile>& cta) {
  if constexpr (!Tile::kBlockSums) {
    for (uint32_t i = 0; i < Tile::kSlots; ++i) {
      ptx::mbarrier_init(cta.tokens_full(i), Tile::kTokenArrivals);
      ptx::mbarrier_init(cta.tokens_empty(i), Tile::kConsumersPerStage);
    }
    if constexpr (Tile::kPushesSums) {
      ptx::mbarrier_init(cta.sums_full(), 1 + 32 * Tile::kConsumerWarps);
      if (!cta.shared()) return;  // nobody sends sums, so the expected bytes would never come
      ptx::mbarrier_arrive_expect_tx(cta.sums_full(), (cta.p.split - 1) * Tile::kPartials *
                                                          cta.own_tokens() * Tile::kWeights * 4);
    }
  } else if (cta.rank == 0) {
    ptx::mbarrier_init(cta.sums_full(), 1 + Tile::kSumArrivals);
    if (!cta.shared()) return;
    ptx::mbarrier_arrive_expect_tx(cta.sums_full(),
                                   (cta.p.split - 1) * Tile::kPartials * Tile::kPartialBytes);
  }
}

__device__ inline void publish_barriers() {
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();  // this thread's TMA loads signal them next
}

// Number of scale tiles for that many steps of 64 of K.
template <typename Tile>
__device__ uint32_t scale_tiles(const Sm90Params& p, uint32_t steps) {
  const uint32_t shift = log2_steps_per_scale_tile<Tile>(p);
  return (steps + shift) >> shift;
}

// Bytes of a packed unit, by the elements that share a scale.
template <typename Tile>
__device__ uint32_t packed_unit_bytes(const Sm90Params& p) {
  return log2_steps_per_scale_tile<Tile>(p) != 0 ? kPackedUnitBytesOf32 : kPackedUnitBytes;
}

// A box of the map has the units of a k-block for each 64 weights. Beyond N and K it has zeros. A
// gated product has one of b and one of b2.
template <typename Tile>
__device__ void load_packed(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t bar) {
  constexpr uint32_t kBlocks = Tile::kColumnsOfD / kPackedRows;
  const uint32_t bytes = kBlocks * Tile::kSteps * packed_unit_bytes<Tile>(cta.p);
  const uint32_t half = cta.block(i) * (2 * Tile::kSteps);  // of a unit
  const uint32_t block = cta.tile.weight_tile * kBlocks;
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kHalves * bytes);
  ptx::cp_async_bulk_tensor_4d(cta.weights(at), &cta.p.weights, 0, half, block, cta.tile.batch, bar,
                               ptx::kEvictFirst);
  if constexpr (Tile::kGated) {
    ptx::cp_async_bulk_tensor_4d(cta.weights(at) + bytes, &gated_params(cta.p).weights2, 0, half,
                                 block, cta.tile.batch, bar, ptx::kEvictFirst);
  }
}

// `bar` counts the bytes of the k-block.
template <typename Tile>
__device__ void load_weights(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t bar) {
  if constexpr (Tile::kPacked) return load_packed(cta, i, at, bar);
  const Sm90Params& p = cta.p;
  const uint32_t stage = cta.block(i);
  const uint32_t scale_bytes = scale_tiles<Tile>(p, cta.steps(i)) * kScaleTileBytes;
  // The code of scale_tile_number, written out: through the function one entry gets other SASS.
  const uint64_t tile =
      static_cast<uint64_t>(cta.tile.weight_tile * Tile::kColumnsOfD / kScaleTileRows) *
          scale_tiles<Tile>(p, cta.k_steps) +
      stage * (Tile::kSteps >> log2_steps_per_scale_tile<Tile>(p));
  if constexpr (Tile::kGated) return load_gated_weights(cta, i, at, bar, tile, scale_bytes);
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kWeightBytes + scale_bytes);
  ptx::cp_async_bulk_tensor_3d(cta.weights(at), &p.weights, stage * (Tile::kK / 2),
                               cta.tile.weight_tile * Tile::kWeights, cta.tile.batch, bar,
                               ptx::kEvictFirst);
  ptx::cp_async_bulk(
      cta.scales(at),
      p.weight_scales + cta.tile.batch * p.weight_scales_batch_bytes + tile * kScaleTileBytes,
      scale_bytes, bar, ptx::kEvictFirst);
}

// Loads the k-block with the K tail. A separate barrier counts its bytes, and the stage becomes
// full for consumers when the scales beyond K are zero.
template <typename Tile>
__device__ void load_k_tail_stage(const Cta90<Tile>& cta, uint32_t i, uint32_t at) {
  load_weights(cta, i, at, cta.k_tail_full());
  ptx::mbarrier_wait(cta.k_tail_full(), cta.k_tail_parity);
  const uint32_t last_tile =
      cta.scales(at) + (scale_tiles<Tile>(cta.p, cta.steps(i)) - 1) * kScaleTileBytes;
  const uint32_t k = cta.p.k >> log2_steps_per_scale_tile<Tile>(cta.p);  // as if for 16 elements
#pragma unroll 1
  for (uint32_t lane = 0; lane < 32; ++lane) {
    clear_scales_beyond_k(last_tile + scale_lane(lane), k);
    if constexpr (Tile::kGated) {
      clear_scales_beyond_k(last_tile + Tile::kHalfScaleBytes + scale_lane(lane), k);
    }
  }
  ptx::fence_proxy_async_shared_cta();  // TMA writes there again in the next tile
  ptx::mbarrier_arrive(cta.weights_full(at));
}

template <typename Tile>
__device__ void load_stage(const Cta90<Tile>& cta, uint32_t i, uint32_t at) {
  const bool ends_k = cta.block(i) == cta.p.k / Tile::kK;
  if (ends_k && k_ends_inside_step<Tile>(cta.p)) {
    load_k_tail_stage(cta, i, at);
  } else {
    load_weights(cta, i, at, cta.weights_full(at));
  }
}

// Loads only the codes of a k-block, if its scales are linear.
template <typename Tile>
__device__ void load_codes(const Cta90<Tile>& cta, uint32_t i, uint32_t at) {
  const uint32_t bar = cta.weights_full(at);
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kWeightBytes);
  if constexpr (Tile::kGated) return load_gated_codes(cta, i, at, bar);
  ptx::cp_async_bulk_tensor_3d(cta.weights(at), &cta.p.weights, cta.block(i) * (Tile::kK / 2),
                               cta.tile.weight_tile * Tile::kWeights, cta.tile.batch, bar,
                               ptx::kEvictFirst);
}

// Whether the first k-blocks are requested before anything else, though all lanes copy their scales
// later. With 256 tokens the entry for any product would spill a register.
template <typename Tile>
constexpr bool kStartsLinear = Tile::kTokens < 256;

template <typename Tile>
__device__ void load_first_stage(const Cta90<Tile>& cta, uint32_t i) {
  if (kStartsLinear<Tile> && has_linear_weight_scales<Tile>(cta.p)) return load_codes(cta, i, i);
  load_stage(cta, i, i);
}
template <typename Tile>
__device__ uint32_t first_stages(const Cta90<Tile>& cta) {
  const bool none = !kStartsLinear<Tile> && has_linear_weight_scales<Tile>(cta.p);
  return none ? 0 : min(Tile::kStagesFirst, cta.count);
}

// Runs before anything else in the CTA: the first loads are issued as soon as their barriers exist.
template <typename Tile>
__device__ void start_weights(const Cta90<Tile>& cta) {
  static_assert(Tile::kStagesAhead < Tile::kStages);
  note_clock(kClock_begin_ns);
  note_clock(kClock_start);
  ptx::prefetch_tensormap(&cta.p.weights);
  if (Tile::kNaturalTokens) ptx::prefetch_tensormap(&cta.p.tokens);
  if (Tile::kGated) ptx::prefetch_tensormap(&gated_params(cta.p).weights2);
  init_stage_barriers(cta, 0, Tile::kStagesFirst);
  if (!Tile::kPlain) ptx::mbarrier_init(cta.k_tail_full(), 1);
  publish_barriers();
  note_clock(kClock_first_load);
  if (cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
#pragma unroll 1
  for (uint32_t i = 0; i < first_stages(cta); ++i) load_first_stage(cta, i);
  init_stage_barriers(cta, Tile::kStagesFirst, Tile::kStages);
  init_other_barriers(cta);
  publish_barriers();
  ptx::griddepcontrol_launch_dependents();
}

template <typename Tile>
__device__ void load_remaining_weights(Cta90<Tile> cta) {
  RingPosition<Tile::kStages> arrived, at;
  uint32_t i = min(Tile::kStagesAhead, cta.count);
  if constexpr (Tile::kStagesFirst < Tile::kStagesAhead) {
    ptx::griddepcontrol_wait();  // see kStagesFirst
    for (uint32_t first = Tile::kStagesFirst; first < i; ++first) load_stage(cta, first, first);
  }
  at.stage = i;
  at.parity = 1;  // the first round finds every stage empty
  for (;;) {
    for (; i < cta.count; ++i, arrived.advance(), at.advance()) {
      ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      load_stage(cta, i, at.stage);
    }
    if (take_next_piece(cta)) {
      i = 0;
      continue;
    }
    const uint32_t next = next_tile<Tile>(cta.p, cta.index);
    if (next == kNoTile) return;
    if (cta.stage_begin + cta.count == stages_of_k(cta.p)) cta.k_tail_parity ^= 1;
    take_tile(cta, next);
    i = 0;
  }
}

// ---- Token warps -------------------------------------------------------------------------------

// In round n through the ring this waits for phase n - 1 of the slot; in the first round it does
// not wait.
template <typename Tile>
__device__ void wait_for_slot(const Cta90<Tile>& cta, const RingPosition<Tile::kSlots>& at) {
  ptx::mbarrier_wait(cta.tokens_empty(at.stage), at.parity ^ 1);
}

// Tokens in fp16 that the pre-pass or a quantizer has put in order: a slab of all M rows for each
// 64 elements of K (tokens_kernel.cuh).
template <typename Tile>
__device__ void load_tile_tokens(const Cta90<Tile>& cta, RingPosition<Tile::kSlots>& at) {
  const Sm90Params& p = cta.p;
  const uint32_t first = cta.tile.token_tile * Tile::kTokens;
  const uint32_t bytes = min(p.m - first, Tile::kTokens) * kTokenRowBytes;
  const uint64_t slab = static_cast<uint64_t>(p.m) * kTokenRowBytes;
  const uint8_t* from = static_cast<const uint8_t*>(p.token_sub_tiles) +
                        cta.tile.batch * p.sub_tiles_batch_bytes +
                        cta.stage_begin * Tile::kSteps * slab + first * uint64_t{kTokenRowBytes};
  for (uint32_t i = 0; i < cta.count * Tile::kSlotsPerStage; ++i, at.advance()) {
    wait_for_slot(cta, at);
    const uint32_t bar = cta.tokens_full(at.stage);
    ptx::mbarrier_arrive_expect_tx(bar, bytes * Tile::kSlotSteps);
    // Unrolled, ptxas of CUDA 13.0 adds 2 slabs by a shift of 32 bits, whose upper half is not set.
#pragma unroll 1
    for (uint32_t step = 0; step < Tile::kSlotSteps; ++step, from += slab) {
      ptx::cp_async_bulk(cta.tokens(at.stage) + step * Tile::kSubTileBytes, from, bytes, bar,
                         ptx::kEvictLast);
    }
    if (Tile::kAddsOwnParts && i % Tile::kSlotsPerStage == Tile::kSlotsPerStage - 1) {
      from += (cta.blocks_apart() - 1) * Tile::kSteps * slab;
    }
  }
}

// Rows of a TMA box for tokens straight from A (host/family/sm90.cc). If a problem has fewer tokens
// than a wide tile, a box has no other rows: writing zeros for them took longer than loading rows.
// For 40 tokens in a tile of 128 it took twice the time of 128 tokens (docs/notebook.md), and with
// packed weights one token in a tile of 32 took 1.3 times the time of 16.
template <typename Tile>
__device__ uint32_t rows_of_box(const Sm90Params& p) {
  return clips_box(Tile::kTokens, Tile::kPacked) ? min(p.m, Tile::kTokens) : Tile::kTokens;
}

// The consumers zero the rows beyond the box once, before the first k-block, so that stale data
// never reaches a sum. TMA writes the other rows meanwhile. A thread clears the same word of every
// sub-tile, or of every few: a row of stores to constant offsets.
template <typename Tile>
__device__ void clear_rows_beyond_box(const Cta90<Tile>& cta, uint32_t thread) {
  constexpr uint32_t kTurn = 16 * 32 * Tile::kConsumerWarps;  // bytes that all clear at once
  constexpr uint32_t kSpan = kTurn > Tile::kSubTileBytes ? kTurn : Tile::kSubTileBytes;
  constexpr uint32_t kRing = Tile::kSlots * Tile::kSlotBytes;
  static_assert(kRing % kSpan == 0 && kSpan % kTurn == 0 && kSpan % Tile::kSubTileBytes == 0);
  const uint32_t rows = rows_of_box<Tile>(cta.p);
  if (rows == Tile::kTokens) return;
#pragma unroll 1
  for (uint32_t at = 16 * thread; at < kSpan; at += kTurn) {
    if (at % Tile::kSubTileBytes < rows * kTokenRowBytes) continue;
#pragma unroll
    for (uint32_t span = 0; span < kRing; span += kSpan) {
      ptx::st_shared_v4_b32(cta.tokens(0) + span + at, make_uint4(0, 0, 0, 0));
    }
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::named_barrier_sync<kConsumerBarrier, 32 * Tile::kConsumerWarps>();
}

// `threads` consumers zero the rows that no load for the last token tile writes, before the first
// load, since loads for other tiles write them.
template <typename Tile>
__device__ void clear_rows_beyond_m(const Cta90<Tile>& cta, uint32_t thread, uint32_t threads) {
  constexpr uint32_t kRows = Tile::kSlots * Tile::kSlotSteps * Tile::kTokens, kThreadsPerRow = 8;
  const uint32_t rows = cta.p.last_tile_rows;
  if (rows == Tile::kTokens) return;
  const uint32_t to = cta.tokens(0) + thread % kThreadsPerRow * 16;
#pragma unroll 1
  for (uint32_t row = thread / kThreadsPerRow; row < kRows; row += threads / kThreadsPerRow) {
    if (row % Tile::kTokens < rows) continue;
    ptx::st_shared_v4_b32(to + row * kTokenRowBytes, make_uint4(0, 0, 0, 0));
  }
  ptx::fence_proxy_async_shared_cta();
}

// Loads token sub-tiles straight from A. TMA writes zeros beyond K, and beyond M in the last of
// several tiles.
template <typename Tile>
__device__ void load_natural_tokens(const Cta90<Tile>& cta, RingPosition<Tile::kSlots>& at) {
  constexpr uint32_t kSlotK = Tile::kSlotSteps * kScaleTileK;
  for (uint32_t i = 0; i < cta.count * Tile::kSlotsPerStage; ++i, at.advance()) {
    wait_for_slot(cta, at);
    const uint32_t bar = cta.tokens_full(at.stage);
    const uint32_t k = Tile::kAddsOwnParts ? cta.block(i / Tile::kSlotsPerStage) * Tile::kK +
                                                 i % Tile::kSlotsPerStage * kSlotK
                                           : cta.stage_begin * Tile::kK + i * kSlotK;
    ptx::mbarrier_arrive_expect_tx(bar,
                                   rows_of_box<Tile>(cta.p) * (Tile::kSlotSteps * kTokenRowBytes));
#pragma unroll
    for (uint32_t step = 0; step < Tile::kSlotSteps; ++step) {
      ptx::cp_async_bulk_tensor_3d(cta.tokens(at.stage) + step * Tile::kSubTileBytes, &cta.p.tokens,
                                   k + step * kScaleTileK, cta.tile.token_tile * Tile::kTokenStep,
                                   cta.tile.batch, bar, ptx::kEvictLast);
    }
  }
}

template <typename Tile>
__device__ void load_tokens(Cta90<Tile> cta) {
  RingPosition<Tile::kSlots> at;
  for (;;) {
    if constexpr (Tile::kNaturalTokens) {
      load_natural_tokens(cta, at);
    } else {
      load_tile_tokens(cta, at);
    }
    if (take_next_piece(cta)) continue;
    const uint32_t next = next_tile<Tile>(cta.p, cta.index);
    if (next == kNoTile) return;
    take_tile(cta, next);
  }
}

}  // namespace nvfp4
