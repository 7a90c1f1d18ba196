// SPDX-License-Identifier: MIT
// The consumer warps of gemm.cu: they decode weights from shared memory in registers and issue
// wgmma.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/wgmma.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/descriptor.h"
#include "kernel/sm90/gated.cuh"

namespace nvfp4 {

// A k-block's weights as this lane decodes them: 64 elements of K of row g of both rows of eight of
// its warp (kWarpColumns), 32 per half, and their four scales.
struct WeightRows {
  uint4 codes[2][2];  // [half][row]
  uint32_t scales[2];
};

// Addresses that a lane reads in stage 0, for the first of its rows.
struct WideLane {
  uint32_t codes[2];  // of half 0 and half 1
  uint32_t scales, full;
};

template <typename Tile>
__device__ WideLane wide_lane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t row = warp % Tile::kConsumersPerStage * Tile::kWarpColumns + g;
  // The 128-byte swizzle of TMA: 8 lanes hit 8 different 16-byte columns.
  const uint32_t codes = cta.weights(0) + row * (Tile::kK / 2) + (2 * c ^ g) * 16;
  // A shuffle, because otherwise ptxas computes the addresses again for every k-block.
  const auto keep = [&](uint32_t value) { return __shfl_sync(0xFFFFFFFF, value, lane); };
  return {{keep(codes), keep(codes ^ 16)},
          keep(cta.scales(0) + c * kScaleTileBytes + scales_of_row<Tile>(cta.tile, row)),
          keep(cta.weights_full(0))};
}

// Steps beyond K have no scales in shared memory, and zero codes (filled by TMA).
template <typename Tile>
__device__ void load_scales(const WideLane& lane, uint32_t stage, bool beyond_k, WeightRows& rows) {
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    rows.scales[r] =
        beyond_k
            ? 0
            : ptx::ld_shared_b32(lane.scales + stage * Tile::kScaleBytes + r * Tile::kScalesApart);
  }
}

template <typename Tile, uint32_t kHalf>
__device__ void load_codes(const WideLane& lane, uint32_t stage, WeightRows& rows) {
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    rows.codes[kHalf][r] = ptx::ld_shared_v4_b32(lane.codes[kHalf] + stage * Tile::kWeightBytes +
                                                 r * Tile::kCodesApart);
  }
}

// Eight codes of both rows as the A operands of two steps.
__device__ inline void decode_word(const uint4 (&codes)[2], const uint32_t (&scales)[2], uint32_t j,
                                   const Multipliers& by, uint32_t (&a)[2][4]) {
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    uint32_t h[4];
    decode_codes(word(codes[r], j), scales[r], j / 2, by, h);
    a[0][r] = h[0];
    a[0][r + 2] = h[1];
    a[1][r] = h[2];
    a[1][r + 2] = h[3];
  }
}

// The wgmmas of one word: two steps.
template <typename Tile>
__device__ void issue_word(const uint32_t (&a)[2][4], uint32_t slot, uint32_t at, bool accumulate,
                           float (&sums)[Tile::kTokens / 2]) {
  const uint32_t b = slot + (at / 2 * Tile::kSubTileBytes + at % 2 * 64) / 16;
  ptx::wgmma(sums, a[0], wgmma_descriptor_from_low(b), accumulate);
  ptx::wgmma(sums, a[1], wgmma_descriptor_from_low(b + 2), true);
}

// The slot that a group reads, and the slot that it read before.
template <typename Tile>
struct TokenSlot {
  RingPosition<Tile::kSlots> at;
  uint32_t before;
};

// Positions of this group's warps in both rings.
template <typename Tile>
struct WidePosition {
  RingPosition<Tile::kStages> stage;
  TokenSlot<Tile> slot;

  __device__ explicit WidePosition(uint32_t group) {
    stage.advance(group);
    slot.at.advance(group * Tile::kSlotsPerStage);
  }

  // For a tile whose first k-block is the CTA's k-block `first`.
  static __device__ WidePosition at(uint32_t first, uint32_t group) {
    WidePosition position(0);
    position.stage = RingPosition<Tile::kStages>::at(first + group);
    position.slot.at = RingPosition<Tile::kSlots>::at((first + group) * Tile::kSlotsPerStage);
    return position;
  }
};

// A part of a k-block: kStepWords words. They are decoded while the wgmmas of the previous part
// run; then their own wgmmas follow as one group.
//
// ptxas waits for every wgmma (C7512, C7513, C7515) unless the code has this form: the first wgmma
// sets the sums and no other instruction does; between a decoded word and its wgmmas there is no
// run-time branch except the wait for a slot.
template <typename Tile, uint32_t kBlockStep>
__device__ void multiply_step(const Cta90<Tile>& cta, const WeightRows& rows, uint32_t lane,
                              bool first, const Multipliers& by, TokenSlot<Tile>& slot,
                              float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kWords = Tile::kStepWords;
  constexpr uint32_t kWordsPerSlot = 2 * Tile::kSlotSteps;
  static_assert(kWordsPerSlot % kWords == 0, "a part reads one slot");
  constexpr uint32_t kFirstOfSlot = kBlockStep * kWords % kWordsPerSlot;
  constexpr uint32_t kHalf = kBlockStep * kWords / 4;
  const uint32_t scales[2] = {decode_scale_pair<kHalf>(rows.scales[0]),
                              decode_scale_pair<kHalf>(rows.scales[1])};
  uint32_t a[kWords][2][4];
#pragma unroll
  for (uint32_t j = 0; j < kWords; ++j) {
    decode_word(rows.codes[kHalf], scales, (kBlockStep * kWords + j) % 4, by, a[j]);
  }
  if (kFirstOfSlot == 0) ptx::mbarrier_wait(cta.tokens_full(slot.at.stage), slot.at.parity);
  const uint32_t b = static_cast<uint32_t>(wgmma_descriptor(cta.tokens(0))) +
                     slot.at.stage * (Tile::kSlotBytes / 16);
  ptx::wgmma_fence();
#pragma unroll
  for (uint32_t j = 0; j < kWords; ++j) {
    issue_word<Tile>(a[j], b, kFirstOfSlot + j, j > 0 || !first, sums);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<1>();
  // The previous part is done, and so is the previous slot if this part was the first to read a new
  // one.
  if (kFirstOfSlot == 0 && !first && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(slot.before));
  if (kFirstOfSlot + kWords == kWordsPerSlot) {
    slot.before = slot.at.stage;
    slot.at.advance(kBlockStep == 3 ? Tile::kSlotsPerStage * (Tile::kGroups - 1) + 1 : 1);
  }
}

// Multiplies the k-blocks of this warp's group: from the group's number on, every kGroups-th. A
// group without k-blocks has sums of zero.
template <typename Tile>
__device__ void multiply(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                         WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kEmpty = Tile::kWeightsEmptyAt - Tile::kWeightsFullAt;
  const uint32_t group = warp / Tile::kConsumersPerStage;
  if (Tile::kGroups > 1 && group >= cta.count) {
#pragma unroll
    for (float& sum : sums) sum = 0;
    return;
  }
  const WideLane at = wide_lane(cta, warp, lane);
  const Multipliers by = make_multipliers(min(cta.p.batches, 1));
  const uint32_t last = cta.count - 1;
  const bool ends_beyond_k = lane % 4 >= cta.steps(last);
  RingPosition<Tile::kStages>& stage = position.stage;
  TokenSlot<Tile>& slot = position.slot;
  for (uint32_t i = group; i < cta.count; i += Tile::kGroups, stage.advance(Tile::kGroups)) {
    const uint32_t full = at.full + 8 * stage.stage;
    ptx::mbarrier_wait(full, stage.parity);
    note_stage(cta, i);
    WeightRows rows;
    load_scales<Tile>(at, stage.stage, i == last && ends_beyond_k, rows);
    load_codes<Tile, 0>(at, stage.stage, rows);
    multiply_step<Tile, 0>(cta, rows, lane, i == group, by, slot, sums);
    load_codes<Tile, 1>(at, stage.stage, rows);
    multiply_step<Tile, 1>(cta, rows, lane, false, by, slot, sums);
    multiply_step<Tile, 2>(cta, rows, lane, false, by, slot, sums);
    multiply_step<Tile, 3>(cta, rows, lane, false, by, slot, sums);
    // This arrival follows the wgmmas that use the decoded values. When it came right after the
    // loads, it overtook some of them: about one row in a million was read from the next k-block.
    ptx::mbarrier_arrive(full + kEmpty);  // each lane for what it has read
  }
  ptx::wgmma_wait_group<0>();
  if (lane == 0) note_last_clock(kClock_last_commit);
  if (Tile::kSeveralTiles && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(slot.before));
}

}  // namespace nvfp4
