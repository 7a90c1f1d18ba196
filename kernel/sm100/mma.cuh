// SPDX-License-Identifier: MIT
// The MMA thread of gemm.cu: scales to tensor memory and block-scaled MMAs.
#pragma once

#include <cstdint>

#include "kernel/clocks.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/ring.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/descriptor.h"

namespace nvfp4 {

// Tensor memory column of the scales of one step: weights first, then tokens.
template <typename Tile>
__device__ uint32_t scale_column(uint32_t tmem, uint32_t stage, uint32_t step) {
  return tmem + Tile::kScaleColumnsAt + (stage * Tile::kSteps + step) * Tile::kStepColumns;
}

// One step of 64 along K: scales to tensor memory, then the MMA that uses them (same thread, in
// order).
template <typename Tile>
__device__ void issue_step(const Cta<Tile>& cta, uint32_t tmem, uint32_t stage, uint32_t step,
                           bool accumulate) {
  constexpr uint32_t kInstruction = instruction_descriptor<Tile::kWeights, Tile::kTokens>();
  constexpr uint32_t kStepBytes = kMmaK / 2;
  const uint32_t weight_scales = scale_column<Tile>(tmem, stage, step);
  const uint32_t token_scales = weight_scales + Tile::kWeightScaleColumns;

  const uint32_t tile_at = step * kScaleTileBytes;
  ptx::tcgen05_cp_32x128b_warpx4<Tile::kCtaGroup>(
      weight_scales, scale_descriptor(cta.weight_scales(stage) + tile_at));
  for (uint32_t i = 0; i < Tile::kTokenScaleBlocks; ++i) {
    const uint32_t block_at = i * Tile::kSteps * kScaleTileBytes;
    ptx::tcgen05_cp_32x128b_warpx4<Tile::kCtaGroup>(
        token_scales + i * kScaleTileColumns,
        scale_descriptor(cta.token_scales(stage) + block_at + tile_at));
  }
  // A 64-token tile that is the upper half of its block of 128 rows starts 2 columns in.
  const uint32_t half = Tile::kTokens < kScaleTileRows ? cta.tile.token_tile % 2 * 2 : 0;
  const uint64_t weights = operand_descriptor(cta.weights(stage) + step * kStepBytes);
  const uint64_t tokens = operand_descriptor(cta.tokens(stage) + step * kStepBytes);
  ptx::tcgen05_mma_mxf4nvf4_block16<Tile::kCtaGroup>(
      tmem, weights, tokens, kInstruction, weight_scales, token_scales + half, accumulate);
}

template <typename Tile>
__device__ void issue_mma(const Cta<Tile>& cta, uint32_t tmem) {
  RingPosition<Tile::kStages> at;
  for (uint32_t filling = 0; filling < cta.fillings; ++filling, at.advance()) {
    ptx::mbarrier_wait(cta.full(at.stage), at.parity);
    if (filling == 0) note_clock(kClock_first_full);
    if (filling + 1 == cta.fillings) note_clock(kClock_last_full);
    ptx::tcgen05_fence_after_thread_sync();
    for (uint32_t step = 0; step < cta.steps(filling); ++step) {
      issue_step(cta, tmem, at.stage, step, filling + step != 0);
    }
    // Nobody waits for a stage that is not filled again, and an arrival must not outlive the CTA.
    if (filling + Tile::kStages < cta.fillings)
      ptx::tcgen05_commit<Tile::kCtaGroup>(cta.empty(at.stage));
  }
  ptx::tcgen05_commit<Tile::kCtaGroup>(cta.accumulator_full());
  note_clock(kClock_last_commit);
}

}  // namespace nvfp4
