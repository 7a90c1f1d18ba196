// SPDX-License-Identifier: MIT
// NVFP4 GEMM for Blackwell (sm_100a; the same PTX for sm_103a and the family sm_100f).
//
// CONTRACT
//   D[l][m][n] = fp16( alpha * sum_k  A[l][m][k] sa[l][m][k/16]  B[l][n][k] sb[l][n][k/16] )
//   One CTA: 128 columns n (weights, B) x kTokens rows m (tokens, A) of one batch l, all of K.
//   K a multiple of 64, at least 64. Nothing outside the described elements influences D: rows
//   beyond M and N are zero (filled by TMA) under whatever scale the padding holds, and land in
//   accumulator lanes and columns that are not stored; the last stage has only the 64-steps that
//   exist.
//
// PIPELINE  (three roles, mbarriers only inside the loop; r = round through the ring)
//
//   TMA warp   --- bytes --->  full[s]  phase r  --->  MMA thread
//   (1 thread) <-- commit ---  empty[s] phase r  <---  (1 thread)  --- commit ---> accumulator_full
//                                                                                        |
//                                   epilogue warps 2..5  <---  phase 0  <----------------+
//
//   full[s]:  1 arrival (expect_tx) + the stage's bytes.   empty[s]: 1 arrival, by tcgen05.commit,
//   only when the stage is filled again.   accumulator_full: 1 arrival, by the last commit. The
//   ring's first filling is issued by the thread that initialised the barriers, before anything
//   else; it waits for no empty barrier. From round r >= 1 on it waits for phase r - 1.
#include "kernel/descriptor.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/ring.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"
#include "kernel/tiles.cuh"

namespace nvfp4 {

// What every role needs: the problem, this CTA's tile, shared memory as 32-bit addresses.
template <typename Tile>
struct Cta {
  const Sm100Params& p;
  TileCoordinate tile;
  uint32_t smem;      // base of the map in tile.h
  uint32_t k_steps;   // 64-wide steps of K
  uint32_t fillings;  // of the ring: ceil(K / 256)

  __device__ uint32_t full(uint32_t stage) const { return smem + Tile::kFullAt + 8 * stage; }
  __device__ uint32_t empty(uint32_t stage) const { return smem + Tile::kEmptyAt + 8 * stage; }
  __device__ uint32_t accumulator_full() const { return smem + Tile::kAccumulatorFullAt; }
  __device__ uint32_t weights(uint32_t stage) const {
    return smem + Tile::kWeightsAt + stage * Tile::kWeightBytes;
  }
  __device__ uint32_t tokens(uint32_t stage) const {
    return smem + Tile::kTokensAt + stage * Tile::kTokenBytes;
  }
  __device__ uint32_t weight_scales(uint32_t stage) const {
    return smem + Tile::kWeightScalesAt + stage * Tile::kWeightScaleBytes;
  }
  __device__ uint32_t token_scales(uint32_t stage) const {
    return smem + Tile::kTokenScalesAt + stage * Tile::kTokenScaleBytes;
  }
  // 64-steps in a filling: 4, fewer in the last one.
  __device__ uint32_t steps(uint32_t filling) const {
    return min(Tile::kSteps, k_steps - filling * Tile::kSteps);
  }
};

// ---- TMA warp ----------------------------------------------------------------------------------

template <typename Tile>
__device__ void init_barriers(const Cta<Tile>& cta) {
  for (uint32_t stage = 0; stage < Tile::kStages; ++stage) {
    ptx::mbarrier_init(cta.full(stage), 1);
    ptx::mbarrier_init(cta.empty(stage), 1);
  }
  ptx::mbarrier_init(cta.accumulator_full(), 1);
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();  // this thread's own TMA loads signal them next
}

// Scale tiles of one stage for the block of 128 rows: contiguous in K, so one copy.
__device__ inline void load_scales(uint32_t dst, const uint8_t* scales, uint32_t block,
                                   uint32_t k_steps, uint32_t first_step, uint32_t bytes,
                                   uint32_t bar, uint64_t policy) {
  const uint64_t tile = scale_tile_number(block, k_steps, first_step);
  ptx::cp_async_bulk(dst, scales + tile * kScaleTileBytes, bytes, bar, policy);
}

// What one filling brings to full[stage], weights and tokens together.
template <typename Tile>
__device__ void expect_stage(const Cta<Tile>& cta, uint32_t filling, uint32_t stage) {
  const uint32_t bar = cta.full(stage);
  const uint32_t scale_bytes = cta.steps(filling) * kScaleTileBytes;
  ptx::mbarrier_arrive_expect_tx(
      bar, Tile::kWeightBytes + Tile::kTokenBytes + (1 + Tile::kTokenScaleBlocks) * scale_bytes);
}

// Weights are used once per row of token tiles.
template <typename Tile>
__device__ void load_weights(const Cta<Tile>& cta, uint32_t filling, uint32_t stage) {
  const Sm100Params& p = cta.p;
  const uint32_t bar = cta.full(stage);
  ptx::cp_async_bulk_tensor_3d(cta.weights(stage), &p.weights, filling * (Tile::kK / 2),
                               cta.tile.weight_tile * Tile::kWeights, cta.tile.batch, bar,
                               ptx::kEvictFirst);
  load_scales(cta.weight_scales(stage),
              p.weight_scales + cta.tile.batch * p.weight_scales_batch_bytes, cta.tile.weight_tile,
              cta.k_steps, filling * Tile::kSteps, cta.steps(filling) * kScaleTileBytes, bar,
              ptx::kEvictFirst);
}

// Tokens are used by every weight tile.
template <typename Tile>
__device__ void load_tokens(const Cta<Tile>& cta, uint32_t filling, uint32_t stage) {
  const Sm100Params& p = cta.p;
  const uint32_t bar = cta.full(stage);
  const uint32_t first_step = filling * Tile::kSteps;
  const uint32_t scale_bytes = cta.steps(filling) * kScaleTileBytes;
  ptx::cp_async_bulk_tensor_3d(cta.tokens(stage), &p.tokens, filling * (Tile::kK / 2),
                               cta.tile.token_tile * Tile::kTokens, cta.tile.batch, bar,
                               ptx::kEvictLast);
  const uint8_t* token_scales = p.token_scales + cta.tile.batch * p.token_scales_batch_bytes;
  // A bulk copy does not clip: the second block of a 256-token tile may not exist. Its place is
  // taken by the last one; only rows beyond M see it.
  const uint32_t last_block = (p.m - 1) / kScaleTileRows;
  for (uint32_t i = 0; i < Tile::kTokenScaleBlocks; ++i) {
    const uint32_t block = cta.tile.token_tile * Tile::kTokens / kScaleTileRows + i;
    load_scales(cta.token_scales(stage) + i * Tile::kSteps * kScaleTileBytes, token_scales,
                min(block, last_block), cta.k_steps, first_step, scale_bytes, bar, ptx::kEvictLast);
  }
}

template <typename Tile>
__device__ void load_stage(const Cta<Tile>& cta, uint32_t filling, uint32_t stage) {
  expect_stage(cta, filling, stage);
  load_weights(cta, filling, stage);
  load_tokens(cta, filling, stage);
}

// The first filling of every stage, before anything else happens in the CTA. Earlier grids may
// still run up to griddepcontrol.wait; whatever they write is read after it: tokens always, weights
// unless the caller promised otherwise. D is stored later still, since it comes from tokens.
template <typename Tile>
__device__ void load_first_fillings(const Cta<Tile>& cta) {
  const uint32_t fillings = min(Tile::kStages, cta.fillings);
  if (cta.p.weights_are_static != 0) {
#pragma unroll
    for (uint32_t filling = 0; filling < Tile::kStages; ++filling) {
      if (filling < fillings) {
        expect_stage(cta, filling, filling);
        load_weights(cta, filling, filling);
      }
    }
    ptx::griddepcontrol_wait();
#pragma unroll
    for (uint32_t filling = 0; filling < Tile::kStages; ++filling) {
      if (filling < fillings) load_tokens(cta, filling, filling);
    }
    return;
  }
  ptx::griddepcontrol_wait();
#pragma unroll
  for (uint32_t filling = 0; filling < Tile::kStages; ++filling) {
    if (filling < fillings) load_stage(cta, filling, filling);
  }
}

template <typename Tile>
__device__ void load_remaining_fillings(const Cta<Tile>& cta) {
  RingPosition<Tile::kStages> at;
  for (uint32_t filling = Tile::kStages; filling < cta.fillings; ++filling, at.advance()) {
    ptx::mbarrier_wait(cta.empty(at.stage), at.parity);
    load_stage(cta, filling, at.stage);
  }
}

// ---- MMA thread --------------------------------------------------------------------------------

// Tensor memory column of the scales of one step: weights first, tokens behind them.
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
    ptx::tcgen05_fence_after_thread_sync();
    for (uint32_t step = 0; step < cta.steps(filling); ++step) {
      issue_step(cta, tmem, at.stage, step, filling + step != 0);
    }
    // Nobody waits for a stage that is not filled again, and an arrival must not outlive the CTA.
    if (filling + Tile::kStages < cta.fillings)
      ptx::tcgen05_commit<Tile::kCtaGroup>(cta.empty(at.stage));
  }
  ptx::tcgen05_commit<Tile::kCtaGroup>(cta.accumulator_full());
}

// ---- Epilogue warps ----------------------------------------------------------------------------

template <typename Tile>
__device__ void store_tile(const Cta<Tile>& cta, uint32_t tmem, uint32_t warp, uint32_t lane) {
  const uint32_t band = warp % 4;
  const uint32_t n_first = cta.tile.weight_tile * Tile::kWeights + band * kPieceWeights;
  if (n_first >= cta.p.n) return;
  Epilogue epilogue(cta.p, cta.tile.batch, cta.tile.token_tile * Tile::kTokens, n_first);
  ptx::mbarrier_wait(cta.accumulator_full(), 0);
  ptx::tcgen05_fence_after_thread_sync();
  // The last commit covers every MMA, so the ring is drained and free for the slabs.
  static_assert(4 * kSlabBytes <= Tile::kStages * Tile::kWeightBytes, "slabs lie in the ring");
  const uint32_t slab = cta.smem + Tile::kWeightsAt + band * kSlabBytes;
  epilogue.alpha = cta.p.alpha;
  epilogue.drain<Tile::kTokens>(tmem, band, slab, lane);
}

// ---- Dispatch ----------------------------------------------------------------------------------

template <typename Tile>
__device__ void gemm_sm100(const Sm100Params& p) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t k_steps = p.k / kMmaK;
  const Cta<Tile> cta{p, tile_of_cta(p), ptx::shared_address(shared), k_steps,
                      (k_steps + Tile::kSteps - 1) / Tile::kSteps};

  if (warp == Tile::kProducerWarp) {
    if (ptx::elect_sync()) {
      ptx::prefetch_tensormap(&p.weights);
      ptx::prefetch_tensormap(&p.tokens);
      init_barriers(cta);
      load_first_fillings(cta);
      ptx::griddepcontrol_launch_dependents();
    }
  } else if (warp == Tile::kMmaWarp) {
    ptx::tcgen05_alloc<Tile::kCtaGroup, Tile::kColumnsAllocated>(cta.smem + Tile::kTmemAddressAt);
    ptx::tcgen05_relinquish_alloc_permit<Tile::kCtaGroup>();
    ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();  // publishes the barriers and the tensor memory address
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tmem = ptx::ld_shared_b32(cta.smem + Tile::kTmemAddressAt);

  if (warp == Tile::kProducerWarp) {
    if (ptx::elect_sync()) load_remaining_fillings(cta);
  } else if (warp == Tile::kMmaWarp) {
    if (ptx::elect_sync()) issue_mma(cta, tmem);
  } else {
    store_tile(cta, tmem, warp, lane);
  }

  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();  // the accumulator has been read
  if (warp == Tile::kMmaWarp) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc<Tile::kCtaGroup, Tile::kColumnsAllocated>(tmem);
  }
}

}  // namespace nvfp4

// A variant is a row of host/plan/variants.def and an entry here: one per width of the token tile.
#define NVFP4_GEMM_SM100_ENTRY(tokens)                                                   \
  extern "C" __global__ void __launch_bounds__(nvfp4::Sm100Tile<tokens>::kThreads, 1)    \
      nvfp4_gemm_sm100_128x##tokens(const __grid_constant__ nvfp4::Sm100Params params) { \
    nvfp4::gemm_sm100<nvfp4::Sm100Tile<tokens>>(params);                                 \
  }

NVFP4_GEMM_SM100_ENTRY(64)
NVFP4_GEMM_SM100_ENTRY(128)
NVFP4_GEMM_SM100_ENTRY(256)
