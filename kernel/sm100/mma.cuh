// SPDX-License-Identifier: MIT
// The MMA thread of gemm.cu: scales to tensor memory and block-scaled MMAs.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/descriptor.h"
#include "kernel/sm100/k_tail.cuh"

namespace nvfp4 {

// Arrives when everything that this thread has issued is done, in both CTAs of a pair.
template <typename Tile>
__device__ void commit(uint32_t bar) {
  if constexpr (Tile::kCtas == 2) return ptx::tcgen05_commit_to_pair(bar);
  ptx::tcgen05_commit<Tile::kCtaGroup>(bar);
}

// Operands of one stage: the descriptors of its first step, and the columns for its scales.
struct StageOperands {
  uint64_t weights, tokens, weight_scales, token_scales;
  uint32_t scale_column;
  uint32_t weights_step = kMmaK / 2;  // bytes from a step's weights to those of the next
};

// State that the thread keeps in registers over all stages. A stage's descriptors are those of
// stage 0 plus one addition, which takes fewer instructions than building them.
template <typename Tile, bool kScalesOf32>
struct MmaThread {
  const Cta<Tile>& cta;
  uint32_t tmem;
  StageOperands first;
  uint32_t instruction;
  uint32_t half;  // a 64-token tile in the upper half of its block of 128 rows starts 2 columns in

  __device__ MmaThread(const Cta<Tile>& its, uint32_t tensor_memory)
      : cta(its),
        tmem(tensor_memory + its.walk.accumulator_at()),
        first{operand_descriptor(its.at.weights(0)), operand_descriptor(its.at.tokens(0)),
              scale_descriptor(its.at.weight_scales(0)), scale_descriptor(its.at.token_scales(0)),
              tensor_memory + Tile::kScaleColumnsAt},
        instruction(instruction_descriptor<Tile::kWeights>(its.multiplied_tokens()) |
                    (its.p.operand_format == kFormatNvfp4 ? 0 : kUe8m0Scales)),
        half(Tile::kTokens < kScaleTileRows ? half_of_block(its) : 0) {}

  static __device__ uint32_t half_of_block(const Cta<Tile>& its) {
    const uint32_t tile = Tile::kGrouped ? its.scale_row() / Tile::kTokens : its.tile().token_tile;
    return tile % 2 * 2;
  }

  __device__ StageOperands operands(uint32_t stage) const {
    constexpr uint32_t kWeights = Tile::kMatrices * Tile::kMatrixBytes;
    return {advance(first.weights, stage * kWeights),
            advance(first.tokens, stage * Tile::kTokenBytes),
            advance(first.weight_scales, stage * kWeights),
            advance(first.token_scales, stage * Tile::kTokenScaleBytes),
            first.scale_column + (Tile::kOverlap ? 0 : stage * Tile::kSteps * Tile::kStepColumns)};
  }

  // The same for the last k-block of packed weights, whose codes are in columns if it has fewer
  // units than others. The scales follow them.
  __device__ void find_columns(StageOperands* at, uint32_t stage, uint32_t steps) const {
    const uint32_t units = scale_tiles(cta.p, steps);
    if (!cta.are_packed() || units == scale_tiles(cta.p, Tile::kSteps)) return;
    const uint32_t weights = cta.at.weights(stage);
    at->weights_step = 2 * kColumnBytes;
    at->weights = column_descriptor(weights);
    at->weight_scales =
        scale_descriptor(weights + units * (cta.p.weight_unit_bytes - kScaleTileBytes));
  }

  // The barrier also counts the bytes that the other CTA of a pair has loaded.
  static __device__ void wait_full(uint32_t bar, uint32_t parity) {
    if constexpr (Tile::kCtas == 2) return ptx::mbarrier_wait_cluster(bar, parity);
    ptx::mbarrier_wait(bar, parity);
  }

  __device__ StageOperands wait(uint32_t k_block, RingPosition<Tile::kStages> at) const {
    wait_full(cta.at.full(at.stage), at.parity);
    if (k_block == 0) note_clock(kClock_first_full);
    if (k_block + 1 == cta.k.k_blocks) note_clock(kClock_last_full);
    ptx::tcgen05_fence_after_thread_sync();
    return operands(at.stage);
  }

  // Copies the scale tile of that number in the stage to tensor memory.
  __device__ void copy_scales(const StageOperands& at, uint32_t tile, uint32_t weight_scales,
                              uint32_t token_scales) const {
    const uint32_t tile_at = tile * kScaleTileBytes;
    ptx::tcgen05_cp_32x128b_warpx4<Tile::kCtaGroup>(weight_scales,
                                                    advance(at.weight_scales, tile_at));
    if constexpr (Tile::kGated) {
      ptx::tcgen05_cp_32x128b_warpx4<Tile::kCtaGroup>(
          weight_scales + Tile::kWeightScaleColumns,
          advance(at.weight_scales, Tile::kMatrixBytes + tile_at));
    }
    for (uint32_t i = 0; i < cta.token_scale_blocks(); ++i) {
      const uint32_t block_at = i * Tile::kSteps * kScaleTileBytes;
      ptx::tcgen05_cp_32x128b_warpx4<Tile::kCtaGroup>(token_scales + i * kScaleTileColumns,
                                                      advance(at.token_scales, block_at + tile_at));
    }
  }

  // One step of 64 along K. It copies scales to tensor memory, then issues the MMA that uses them;
  // both are by the same thread and therefore in order. A gated product has a second MMA, for b2,
  // with the same tokens.
  __device__ void issue_step(const StageOperands& at, uint32_t step, bool accumulate) const {
    if constexpr (kScalesOf32) return issue_step_of_32(at, step, accumulate);
    const uint32_t weight_scales = at.scale_column + step * Tile::kStepColumns;
    const uint32_t token_scales = weight_scales + Tile::kMatrices * Tile::kWeightScaleColumns;
    copy_scales(at, step, weight_scales, token_scales);
    const uint32_t weights_at = step * at.weights_step, codes_at = step * (kMmaK / 2);
    ptx::tcgen05_mma_mxf4nvf4_block16<Tile::kCtaGroup>(
        tmem, advance(at.weights, weights_at), advance(at.tokens, codes_at), instruction,
        weight_scales, token_scales + half, accumulate);
    if constexpr (Tile::kGated) {
      ptx::tcgen05_mma_mxf4nvf4_block16<Tile::kCtaGroup>(
          tmem + Tile::kTokens, advance(at.weights, Tile::kMatrixBytes + weights_at),
          advance(at.tokens, codes_at), instruction, weight_scales + Tile::kWeightScaleColumns,
          token_scales + half, accumulate);
    }
  }

  // A scale tile covers two steps: the first step copies it, and each step selects its half.
  __device__ void issue_step_of_32(const StageOperands& at, uint32_t step, bool accumulate) const {
    const uint32_t weight_scales = at.scale_column + step / 2 * Tile::kStepColumns;
    const uint32_t token_scales = weight_scales + Tile::kMatrices * Tile::kWeightScaleColumns;
    if (step % 2 == 0) copy_scales(at, step / 2, weight_scales, token_scales);
    const uint32_t which = step % 2 == 0 ? 0 : kUpperScales;
    const uint32_t weights_at = step * at.weights_step, codes_at = step * (kMmaK / 2);
    ptx::tcgen05_mma_mxf4_block32<Tile::kCtaGroup>(
        tmem, advance(at.weights, weights_at), advance(at.tokens, codes_at), instruction | which,
        weight_scales, token_scales + half, accumulate);
    if constexpr (Tile::kGated) {
      ptx::tcgen05_mma_mxf4_block32<Tile::kCtaGroup>(
          tmem + Tile::kTokens, advance(at.weights, Tile::kMatrixBytes + weights_at),
          advance(at.tokens, codes_at), instruction | which,
          weight_scales + Tile::kWeightScaleColumns, token_scales + half, accumulate);
    }
  }
};

// Waits until both CTAs have read the accumulator of an earlier tile. If accumulators overlap,
// waits until they have read the columns that the previous tile shares with this one; all of the
// tile before that has then been read as well.
template <typename Tile>
__device__ void wait_for_accumulator(const Cta<Tile>& cta) {
  if constexpr (Tile::kSeveralTiles) {
    if (cta.walk.iteration < Tile::kReleasingIterations) return;
    if constexpr (Tile::kOverlap) {
      Walk<Tile> before = cta.walk;
      --before.iteration;
      ptx::mbarrier_wait_cluster(cta.at.accumulator_empty(before.accumulator()),
                                 before.accumulator_parity());
    } else {
      ptx::mbarrier_wait_cluster(cta.accumulator_empty(), cta.walk.accumulator_parity() ^ 1);
    }
    ptx::tcgen05_fence_after_thread_sync();
  }
}

// Issues the k-blocks of four steps in code without branches between steps. Grouped 256x256 has
// some, since a tile may have one block of token scales or two. A step takes 15 to 32 clocks to
// issue (tools/gates/sass.txt), and its MMA takes 48 or more. The steps of the last k-block follow;
// the scales of its last step may have to be cleared first (k_tail.cuh).
template <bool kScalesOf32, typename Tile>
__device__ void issue_mma(const Cta<Tile>& cta, uint32_t tmem) {
  const MmaThread<Tile, kScalesOf32> thread(cta, tmem);
  const KTail<Tile> end{cta};
  const uint32_t complete = cta.k.complete();
  auto at = cta.walk.begin;
  wait_for_accumulator(cta);
  for (uint32_t k_block = 0; k_block < complete; ++k_block, at.advance()) {
    const StageOperands operands = thread.wait(k_block, at);
#pragma unroll
    for (uint32_t step = 0; step < Tile::kSteps; ++step) {
      thread.issue_step(operands, step, k_block + step != 0);
    }
    // Nobody waits for a stage that is not filled again, and an arrival must not outlive the CTA.
    if (cta.walk.is_refilled(k_block)) commit<Tile>(cta.at.empty(at.stage));
  }
  if (complete < cta.k.k_blocks) {
    if (end.exists()) end.wait_until_cleared();
    StageOperands operands = thread.wait(complete, at);
    thread.find_columns(&operands, at.stage, cta.k.steps(complete));
#pragma unroll 1
    for (uint32_t step = 0; step < cta.k.steps(complete); ++step) {
      thread.issue_step(operands, step, complete + step != 0);
    }
    if (Tile::kSeveralTiles && cta.walk.is_refilled(complete)) commit<Tile>(cta.at.empty(at.stage));
  }
  commit<Tile>(cta.accumulator_full());
  note_clock(kClock_last_commit);
}

// If 32 elements share a scale, the MMA is a different instruction, hence the second loop.
template <typename Tile>
__device__ void multiply_tile(const Cta<Tile>& cta, uint32_t tmem) {
  if (cta.p.operand_format == kFormatMxfp4) {
    issue_mma<true>(cta, tmem);
  } else {
    issue_mma<false>(cta, tmem);
  }
}

}  // namespace nvfp4
