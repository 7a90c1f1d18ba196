// SPDX-License-Identifier: MIT
// The consumer warps of gemm.cu for fp16 or bf16 tokens, which TMA loads from A in their natural
// order of K.
//
// From lane 4g+c wgmma needs columns 2c, 2c+1, 2c+8, 2c+9 of each 16, for rows g and g+8: byte c of
// both words of a step. So the four lanes of a row read the same bytes of shared memory, and each
// selects its own from every word.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/wgmma.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode_a16.cuh"
#include "kernel/sm90/descriptor.h"
#include "kernel/sm90/multiply.cuh"

namespace nvfp4 {

// Addresses that a lane reads in stage 0, for the first of its rows.
struct A16Lane {
  uint32_t codes;   // its byte of 16-byte column 0, swizzled: column j is at codes ^ 16 j
  uint32_t scales;  // scales of the first 64 elements
  uint32_t full;
};

template <typename Tile>
__device__ A16Lane a16_lane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t row = warp % Tile::kConsumersPerStage * Tile::kWarpColumns + g;
  return {cta.weights(0) + row * (Tile::kK / 2) + g * 16 + c,
          cta.scales(0) + scales_of_row<Tile>(cta.tile, row), cta.weights_full(0)};
}

// A part of a k-block: 64 elements of K of both rows, this lane's byte of each word. Loading single
// bytes costs the ALU nothing, which is the limit with few tokens. With many tokens shared memory
// is busier, so whole 16-byte columns are loaded and the byte is selected from each word.
template <bool kBytes>
struct A16Codes;

template <>
struct A16Codes<true> {
  uint32_t of[2][2][4];  // [32 elements][row][word]

  __device__ void load(uint32_t piece, uint32_t r, uint32_t from) {
#pragma unroll
    for (uint32_t word = 0; word < 4; ++word) {
      of[piece][r][word] = ptx::ld_shared_u8(from + 4 * word);
    }
  }
  __device__ uint32_t byte(uint32_t piece, uint32_t r, uint32_t word) const {
    return of[piece][r][word];
  }
};

template <>
struct A16Codes<false> {
  uint4 of[2][2];

  __device__ void load(uint32_t piece, uint32_t r, uint32_t from) {
    of[piece][r] = ptx::ld_shared_v4_b32(from & ~3u);
  }
  __device__ uint32_t byte(uint32_t piece, uint32_t r, uint32_t j) const {
    const uint32_t own = 0x4440 + threadIdx.x % 4;  // this lane's byte and three zeros
    return __byte_perm(word(of[piece][r], j), 0, own);
  }
};

template <typename Tile>
using A16CodesOf = A16Codes<(Tile::kTokens <= 64)>;

template <typename Tile>
__device__ void load_a16_codes(uint32_t at, uint32_t step, A16CodesOf<Tile>& codes) {
#pragma unroll
  for (uint32_t piece = 0; piece < 2; ++piece) {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      codes.load(piece, r, (at ^ (step * 2 + piece) * 16) + r * Tile::kCodesApart);
    }
  }
}

// Loads the scales of all parts of a k-block, four for each. A part beyond K has no scales in
// shared memory, and zero codes.
template <typename Tile>
__device__ void load_a16_scales(const A16Lane& lane, uint32_t stage, uint32_t steps,
                                uint32_t (&scales)[Tile::kSteps][2]) {
#pragma unroll
  for (uint32_t step = 0; step < Tile::kSteps; ++step) {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      scales[step][r] = step >= steps
                            ? 0
                            : ptx::ld_shared_b32(lane.scales + stage * Tile::kScaleBytes +
                                                 step * kScaleTileBytes + r * Tile::kScalesApart);
    }
  }
}

// The same for UE8M0 scales. If 32 elements share a scale, a tile has the scales of two parts, and
// each scale is used twice.
template <typename Tile>
__device__ void load_ue8m0_scales(const A16Lane& lane, uint32_t stage, uint32_t steps, bool of_32,
                                  uint32_t (&scales)[Tile::kSteps][2]) {
#pragma unroll
  for (uint32_t step = 0; step < Tile::kSteps; ++step) {
    const uint32_t tile = of_32 ? step / 2 : step;
    const uint32_t bytes = !of_32 ? 0x3210 : step % 2 == 0 ? 0x1100 : 0x3322;
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t at =
          lane.scales + stage * Tile::kScaleBytes + tile * kScaleTileBytes + r * Tile::kScalesApart;
      scales[step][r] = step >= steps ? 0 : __byte_perm(ptx::ld_shared_b32(at), 0, bytes);
    }
  }
}

// The same in an entry for MXFP4 only: both parts of a tile share its word. True if no lane of the
// warp has a scale above 1.
template <typename Tile>
__device__ bool load_mxfp4_scales(const A16Lane& lane, uint32_t stage, uint32_t steps,
                                  uint32_t (&scales)[Tile::kSteps][2]) {
  uint32_t all = 0;
#pragma unroll
  for (uint32_t step = 0; step < Tile::kSteps; step += 2) {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t at = lane.scales + stage * Tile::kScaleBytes + step / 2 * kScaleTileBytes +
                          r * Tile::kScalesApart;
      uint32_t word = step >= steps ? 0 : ptx::ld_shared_b32(at);
      if (step + 1 >= steps) word &= 0xFFFF;  // the second part's lie beyond K
      scales[step][r] = scales[step + 1][r] = word;
      all |= word;
    }
  }
  return !__any_sync(0xFFFFFFFF, (all & 0x80808080) != 0);
}

// Multiplies a decoded part of a k-block, four steps of 16, by the tokens.
template <typename Tile, typename Operand, uint32_t kBlockStep>
__device__ void issue_part(const Cta90<Tile>& cta, const uint32_t (&a)[4][4], uint32_t lane,
                           bool first, TokenSlot<Tile>& slot, float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kStep = kBlockStep % Tile::kSlotSteps;
  if (kStep == 0) ptx::mbarrier_wait(cta.tokens_full(slot.at.stage), slot.at.parity);
  const uint32_t b = static_cast<uint32_t>(wgmma_descriptor(cta.tokens(0))) +
                     slot.at.stage * (Tile::kSlotBytes / 16) + kStep * (Tile::kSubTileBytes / 16);
  ptx::wgmma_fence();
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) {
    Operand::multiply(sums, a[j], wgmma_descriptor_from_low(b + 2 * j), j > 0 || !first);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<1>();
  if (kStep == 0 && !first && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(slot.before));
  if (kStep + 1 == Tile::kSlotSteps) {
    slot.before = slot.at.stage;
    slot.at.advance(kBlockStep == 3 ? Tile::kSlotsPerStage * (Tile::kGroups - 1) + 1 : 1);
  }
}

// A part is decoded while the wgmmas of the previous part run; multiply_step says which form of
// code ptxas needs. Then the codes of the next part are loaded from `row`.
template <typename Tile, typename Operand, uint32_t kBlockStep>
__device__ void multiply_a16_step(const Cta90<Tile>& cta, uint32_t row, const uint32_t (&scales)[2],
                                  uint32_t lane, bool first, bool near, A16CodesOf<Tile>& codes,
                                  TokenSlot<Tile>& slot, float (&sums)[Tile::kTokens / 2]) {
  uint32_t a[4][4];
  if constexpr (Tile::kMxfp4) {
    decode_mxfp4_step<kBlockStep>(codes, scales, near, a);
  } else {
    decode_a16_piece<Operand, 0>(codes, scales, a[0], a[1]);
    decode_a16_piece<Operand, 1>(codes, scales, a[2], a[3]);
  }
  if (kBlockStep < 3) load_a16_codes<Tile>(row, kBlockStep + 1, codes);
  issue_part<Tile, Operand, kBlockStep>(cta, a, lane, first, slot, sums);
}

// Works like multiply().
template <typename Tile, typename Operand>
__device__ void multiply_a16_as(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  static_assert(Tile::kSteps == 4, "the parts of a stage");
  constexpr uint32_t kEmpty = Tile::kWeightsEmptyAt - Tile::kWeightsFullAt;
  const uint32_t group = warp / Tile::kConsumersPerStage;
  if (Tile::kGroups > 1 && group >= cta.count) {
#pragma unroll
    for (float& sum : sums) sum = 0;
    return;
  }
  const A16Lane at = a16_lane(cta, warp, lane);
  const uint32_t last_steps = cta.steps(cta.count - 1);
  const bool of_32 = log2_steps_per_scale_tile<Tile>(cta.p) != 0;
  RingPosition<Tile::kStages>& stage = position.stage;
  TokenSlot<Tile>& slot = position.slot;
  // Number of k-blocks from this one on: it takes one register, while number and count take two.
  const int32_t all = static_cast<int32_t>(cta.count - group);
  for (int32_t left = all; left > 0; left -= Tile::kGroups, stage.advance(Tile::kGroups)) {
    const uint32_t full = at.full + 8 * stage.stage;
    ptx::mbarrier_wait(full, stage.parity);
    note_stage(cta, cta.count - left);
    const uint32_t row = at.codes + stage.stage * Tile::kWeightBytes;
    uint32_t scales[Tile::kSteps][2];
    A16CodesOf<Tile> codes;
    load_a16_codes<Tile>(row, 0, codes);
    const uint32_t steps = left == 1 ? last_steps : Tile::kSteps;
    bool near = true;
    if constexpr (Tile::kMxfp4) {
      near = load_mxfp4_scales<Tile>(at, stage.stage, steps, scales);
    } else if constexpr (Operand::kUe8m0) {
      load_ue8m0_scales<Tile>(at, stage.stage, steps, of_32, scales);
    } else {
      load_a16_scales<Tile>(at, stage.stage, steps, scales);
    }
    const bool first = left == all;
    multiply_a16_step<Tile, Operand, 0>(cta, row, scales[0], lane, first, near, codes, slot, sums);
    multiply_a16_step<Tile, Operand, 1>(cta, row, scales[1], lane, false, near, codes, slot, sums);
    multiply_a16_step<Tile, Operand, 2>(cta, row, scales[2], lane, false, near, codes, slot, sums);
    multiply_a16_step<Tile, Operand, 3>(cta, row, scales[3], lane, false, near, codes, slot, sums);
    ptx::mbarrier_arrive(full + kEmpty);  // each lane for what it read, as in multiply()
  }
  ptx::wgmma_wait_group<0>();
  if (lane == 0) note_last_clock(kClock_last_commit);
  if (Tile::kSeveralTiles && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(slot.before));
}

// Each kind of scales has its own loop, because decoding differs. The fast entry has only NVFP4
// weights.
template <typename Tile>
__device__ void multiply_a16(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                             WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  if constexpr (Tile::kMxfp4) {
    return multiply_a16_as<Tile, Mxfp4Operand>(cta, warp, lane, position, sums);
  }
  if constexpr (kTakesUe8m0<Tile>) {
    if (cta.p.weight_format != kFormatNvfp4) {
      return multiply_a16_as<Tile, Ue8m0Operand>(cta, warp, lane, position, sums);
    }
  }
  multiply_a16_as<Tile, A16Operand<Tile::kTokenType>>(cta, warp, lane, position, sums);
}

}  // namespace nvfp4
