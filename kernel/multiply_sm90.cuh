// SPDX-License-Identifier: MIT
// The consumer warps of gemm_sm90.cu: weights from shared memory to registers, decoded there, and
// wgmma.
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "decode.cuh"
#include "descriptor.cuh"
#include "pipeline.cuh"
#include "ptx_mbarrier.cuh"
#include "ptx_sync.cuh"
#include "ptx_wgmma.cuh"

namespace nvfp4 {

// Half a stage's weights as this lane decodes them: 32 elements of K of the rows g and g + 8 of its
// warp, and their two scales.
struct WeightRows {
  uint4 codes[2];
  uint32_t scales[2];
};

// Where this lane finds them in stage 0, half 0 of row g. Row g + 8 of the same warp lies 8 rows on.
struct LaneAddress {
  uint32_t codes, scales;
};

template <typename Tile>
__device__ LaneAddress lane_address(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t row = warp * 16 + g;
  // The 128-byte swizzle of TMA: 8 lanes hit 8 different 16-byte columns.
  return {cta.weights(0) + row * (Tile::kK / 2) + (2 * c ^ g) * 16,
          cta.scales(0) + c * kScaleTileBytes + row % 32 * 16 + row / 32 * 4};
}

template <typename Tile>
__device__ void load_rows(const LaneAddress& lane, uint32_t stage, uint32_t half, bool beyond_k,
                          WeightRows& rows) {
  const uint32_t codes = (lane.codes + stage * Tile::kWeightBytes) ^ half * 16;
  const uint32_t scales = lane.scales + stage * Tile::kScaleBytes + half * 2;
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    rows.codes[r] = ptx::ld_shared_v4_b32(codes + r * 8 * (Tile::kK / 2));
    // A part beyond K has no scales in shared memory, and zero codes (filled by TMA).
    rows.scales[r] = beyond_k ? 0 : ptx::ld_shared_b16(scales + r * 8 * 16);
  }
}

// Behind the wgmmas that use what was decoded. Right behind the loads, an arrival overtook some of
// them: about one row in a million was read from the next filling (H200, 2026-11-21).
template <typename Tile>
__device__ void give_back(const Cta90<Tile>& cta, uint32_t stage, uint32_t lane) {
  __syncwarp();
  if (lane == 0) ptx::mbarrier_arrive(cta.weights_empty(stage));
}

// Eight codes of both rows as the A operands of two steps.
__device__ inline void decode_word(const WeightRows& rows, const uint32_t (&scales)[2], uint32_t j,
                                   const Multipliers& by, uint32_t (&a)[2][4]) {
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    uint32_t h[4];
    decode_codes(word(rows.codes[r], j), scales[r], j / 2, by, h);
    a[0][r] = h[0];
    a[0][r + 2] = h[1];
    a[1][r] = h[2];
    a[1][r + 2] = h[3];
  }
}

// The wgmmas of a word, two steps.
template <typename Tile>
__device__ void issue_word(const Cta90<Tile>& cta, const uint32_t (&a)[2][4], uint32_t slot,
                           uint32_t at, bool accumulate, float (&sums)[Tile::kTokens / 2]) {
  const uint64_t b = wgmma_descriptor(cta.tokens(slot) + at / 2 * Tile::kSlabBytes + at % 2 * 64);
  ptx::wgmma(sums, a[0], b, accumulate);
  ptx::wgmma(sums, a[1], b + 2, true);
}

// A part of a stage, kPartWords words. They are decoded while the wgmmas of the part before run, then
// their own follow as one group.
//
// How ptxas has to see it, or it waits for every wgmma (C7512, C7513, C7515): the first wgmma sets
// the sums, no other instruction does; no branch that is decided at run time between a decoded word
// and its wgmmas but the wait for a slot.
template <typename Tile, uint32_t kPart>
__device__ void multiply_part(const Cta90<Tile>& cta, const WeightRows& rows, uint32_t lane,
                              bool first, const Multipliers& by, RingPosition<Tile::kSlots>& slot,
                              float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kWords = Tile::kPartWords;
  constexpr uint32_t kWordsPerSlot = 2 * Tile::kSlotSteps;
  static_assert(kWordsPerSlot % kWords == 0, "a part reads one slot");
  constexpr uint32_t kFirstOfSlot = kPart * kWords % kWordsPerSlot;
  const uint32_t before = (slot.stage == 0 ? Tile::kSlots : slot.stage) - 1;
  const uint32_t scales[2] = {decode_scale_pair(rows.scales[0]), decode_scale_pair(rows.scales[1])};
  uint32_t a[kWords][2][4];
#pragma unroll
  for (uint32_t j = 0; j < kWords; ++j) {
    decode_word(rows, scales, (kPart * kWords + j) % 4, by, a[j]);
  }
  if (kFirstOfSlot == 0) ptx::mbarrier_wait(cta.tokens_full(slot.stage), slot.parity);
  ptx::wgmma_fence();
#pragma unroll
  for (uint32_t j = 0; j < kWords; ++j) {
    issue_word(cta, a[j], slot.stage, kFirstOfSlot + j, j > 0 || !first, sums);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<1>();
  // The part before is done; so is the slot before, if this part was the first to read a new one.
  if (kFirstOfSlot == 0 && !first && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(before));
  if (kFirstOfSlot + kWords == kWordsPerSlot) slot.advance();
}

// All of this CTA's stages, of which there is at least one; the sums need no value before.
template <typename Tile>
__device__ void multiply(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                         float (&sums)[Tile::kTokens / 2]) {
  const LaneAddress address = lane_address(cta, warp, lane);
  const Multipliers by = make_multipliers(min(cta.p.batches, 1));
  RingPosition<Tile::kStages> at;
  RingPosition<Tile::kSlots> slot;
  for (uint32_t i = 0; i < cta.count; ++i, at.advance()) {
    const bool beyond_k = lane % 4 >= cta.steps(i);
    WeightRows rows[2];
    ptx::mbarrier_wait(cta.weights_full(at.stage), at.parity);
    load_rows<Tile>(address, at.stage, 0, beyond_k, rows[0]);
    load_rows<Tile>(address, at.stage, 1, beyond_k, rows[1]);
    multiply_part<Tile, 0>(cta, rows[0], lane, i == 0, by, slot, sums);
    multiply_part<Tile, 1>(cta, rows[0], lane, false, by, slot, sums);
    multiply_part<Tile, 2>(cta, rows[1], lane, false, by, slot, sums);
    multiply_part<Tile, 3>(cta, rows[1], lane, false, by, slot, sums);
    give_back(cta, at.stage, lane);
  }
  ptx::wgmma_wait_group<0>();
}

}  // namespace nvfp4
