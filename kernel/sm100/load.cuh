// SPDX-License-Identifier: MIT
// The TMA warp of gemm.cu: one thread that initialises the barriers and fills the ring.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/k_tail.cuh"
#include "kernel/sm100/pair.cuh"

namespace nvfp4 {

// Publishes barriers that this thread has initialised. Its TMA loads signal them next.
__device__ inline void publish_barriers() {
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();
}

// Each line says whose arrivals a phase counts, and what they mean.
template <typename Tile>
__device__ void init_first_barrier(const Addresses<Tile>& at) {
  ptx::mbarrier_init(at.full(0), 1);  // expect_tx, of a pair's leader: copies are there
}

// Initialises all other barriers.
template <typename Tile>
__device__ void init_other_barriers(const Cta<Tile>& cta) {
  for (uint32_t stage = 0; stage < Tile::kStages; ++stage) {
    if (stage > 0) ptx::mbarrier_init(cta.at.full(stage), 1);
    ptx::mbarrier_init(cta.at.empty(stage), 1);  // commit: the MMAs have read the stage
  }
  for (uint32_t i = 0; i < (Tile::kSeveralTiles ? 2 : 1); ++i) {
    ptx::mbarrier_init(cta.at.accumulator_full(i), 1);  // commit: all MMAs of the tile are done
  }
  KTail<Tile>{cta}.init_barriers();
  if constexpr (Tile::kSeveralTiles) {
    constexpr uint32_t kReaders = Tile::kEpilogueWarps * Tile::kCtas;
    for (uint32_t i = 0; i < 2; ++i) {
      ptx::mbarrier_init(cta.at.accumulator_empty(i), kReaders);  // warps have read it
    }
  }
  if constexpr (Tile::kMaxSplit > 1) {
    if (cta.shares_tile()) {
      ptx::mbarrier_init(cta.at.peers_ready(), cta.p.split - 1);  // CTAs: their rings are drained
      for (uint32_t i = 0; i < Tile::kEpilogueWarps; ++i) {
        ptx::mbarrier_init(cta.at.sums(i), 1);  // expect_tx: the sums of the other CTAs are here
      }
    }
  }
}

// Loads the units of one k-block for a block of 128 rows: tiles of scales, or packed weights. They
// are contiguous along K, so one copy suffices.
template <typename Tile>
__device__ void load_units(const Cta<Tile>& cta, uint32_t dst, const uint8_t* first,
                           uint32_t unit_bytes, uint32_t block, uint32_t k_block, uint64_t policy,
                           uint32_t bar) {
  const uint64_t unit = scale_tile_number(block, scale_tiles(cta.p, cta.k.k_steps),
                                          scale_tiles(cta.p, cta.k.first_step(k_block)));
  ptx::cp_async_bulk(dst, first + unit * unit_bytes,
                     scale_tiles(cta.p, cta.k.steps(k_block)) * unit_bytes, bar, policy);
}

// Announces to full[stage] the bytes of one k-block, weights and tokens together.
template <bool kPacked, typename Tile>
__device__ void expect_stage(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kCtas == 2) return expect_stage_of_pair(cta, k_block, stage);
  const uint32_t units = scale_tiles(cta.p, cta.k.steps(k_block));
  const uint32_t weight_bytes =
      kPacked ? units * cta.p.packed_unit_bytes : Tile::kWeightBytes + units * kScaleTileBytes;
  ptx::mbarrier_arrive_expect_tx(
      cta.at.full(stage),
      Tile::kMatrices * weight_bytes + cta.token_bytes() + units * kScaleTileBytes);
}

// Loads one matrix of weights; `scales` are those of all batches, or packed weights.
template <bool kPacked, typename Tile>
__device__ void load_matrix(const Cta<Tile>& cta, uint32_t to, const TensorMap& codes,
                            const uint8_t* scales, uint32_t k_block, uint32_t stage) {
  const Sm100Params& p = cta.p;
  const uint32_t bar = cta.at.full(stage), block = cta.tile().weight_tile;
  const uint8_t* const first = scales + cta.tile().batch * p.weight_scales_batch_bytes;
  if constexpr (kPacked) {
    load_units(cta, to, first, p.packed_unit_bytes, block, k_block, ptx::kEvictFirst, bar);
  } else {
    ptx::cp_async_bulk_tensor_3d(to, &codes, cta.k.first_byte(k_block), cta.first_weight(),
                                 cta.tile().batch, bar, ptx::kEvictFirst);
    load_units(cta, to + Tile::kWeightBytes, first, kScaleTileBytes, block, k_block,
               ptx::kEvictFirst, bar);
  }
}

// Each weight is used once per row of token tiles.
template <bool kPacked, typename Tile>
__device__ void load_weights(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kCtas == 2) return load_weights_of_pair<kPacked>(cta, k_block, stage);
  const uint32_t to = cta.at.weights(stage);
  load_matrix<kPacked>(cta, to, cta.p.weights, cta.p.weight_scales, k_block, stage);
  if constexpr (Tile::kGated) {
    const Sm100GatedParams& gated = gated_params(cta.p);
    load_matrix<kPacked>(cta, to + Tile::kMatrixBytes, gated.weights2, gated.weight_scales2,
                         k_block, stage);
  }
}

// Each token is used by every weight tile.
template <typename Tile>
__device__ void load_tokens(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kCtas == 2) return load_tokens_of_pair(cta, k_block, stage);
  const Sm100Params& p = cta.p;
  const uint32_t bar = cta.at.full(stage);
  cta.each_box_of_tokens(stage, [&](uint32_t to, uint32_t row) {
    ptx::cp_async_bulk_tensor_3d(to, &p.tokens, cta.k.first_byte(k_block), row, cta.batch(), bar,
                                 p.token_policy);
  });
  const uint8_t* token_scales = p.token_scales;
  if (!Tile::kGrouped) token_scales += cta.tile().batch * p.token_scales_batch_bytes;
  static_assert(Tile::kCtas == 2 || Tile::kTokens <= kScaleTileRows,
                "a bulk copy does not clip, so it takes the one block, which is there");
  load_units(cta, cta.at.token_scales(stage), token_scales, kScaleTileBytes,
             cta.scale_row() / kScaleTileRows, k_block, p.token_policy, bar);
}

template <bool kPacked, typename Tile>
__device__ void load_stage(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  expect_stage<kPacked>(cta, k_block, stage);
  load_weights<kPacked>(cta, k_block, stage);
  load_tokens(cta, k_block, stage);
}

// Number of stages whose weights are loaded before the wait for earlier grids, if no earlier grid
// writes weights. It is small: if that wait returns at once, the tokens of stage 0 queue behind
// every earlier load. Packed weights of all stages are loaded, so that a launch beside an earlier
// one has as many bytes in flight as the ring holds.
template <bool kPacked, typename Tile>
constexpr uint32_t kEarlyStages = kPacked ? Tile::kStages : 3;

// The copies of packed weights take few instructions, so their loops need not be unrolled.
template <bool kPacked, typename Tile>
constexpr uint32_t kUnrolled = kPacked ? 1 : Tile::kStages;

// Loads the weights of these stages, then waits for earlier grids, then loads their tokens. The
// weights of stage 0 have been loaded.
template <bool kPacked, typename Tile>
__device__ void load_early_stages(const Cta<Tile>& cta) {
  constexpr uint32_t kStages = kEarlyStages<kPacked, Tile>, kUnroll = kUnrolled<kPacked, Tile>;
  static_assert(kStages <= Tile::kStages);
#pragma unroll kUnroll
  for (uint32_t k_block = 1; k_block < kStages; ++k_block) {
    if (k_block < cta.k.k_blocks) {
      expect_stage<kPacked>(cta, k_block, k_block);
      load_weights<kPacked>(cta, k_block, k_block);
    }
  }
  ptx::griddepcontrol_wait();
#pragma unroll kUnroll
  for (uint32_t k_block = 0; k_block < kStages; ++k_block) {
    if (k_block < cta.k.k_blocks) load_tokens(cta, k_block, k_block);
  }
}

// Whether weights are loaded before earlier grids have ended.
template <typename Tile>
__device__ bool loads_early(const Sm100Params& p) {
  return !Tile::kGrouped && p.weights_are_static != 0;
}

// Called before the first loads. A CTA of a grouped product has waited before it looked for its
// tile.
template <typename Tile>
__device__ void wait_for_earlier_grids(const Sm100Params& p) {
  note_clock(kClock_first_load);
  if (!Tile::kGrouped && !loads_early<Tile>(p)) ptx::griddepcontrol_wait();
}

// Loads the first k-block of every stage before anything else happens in the CTA. Earlier grids may
// still run until griddepcontrol.wait, so everything that they may write is loaded after it: tokens
// and row ends of groups, and weights unless the caller promised that they are static. D depends on
// tokens, so its stores come later still.
template <bool kPacked, typename Tile>
__device__ void load_first_k_blocks_of(const Cta<Tile>& cta) {
  constexpr uint32_t kUnroll = kUnrolled<kPacked, Tile>;
  const bool early = loads_early<Tile>(cta.p);
  load_weights<kPacked>(cta, 0, 0);
  expect_stage<kPacked>(cta, 0, 0);
  if (!early) load_tokens(cta, 0, 0);
  if constexpr (!Tile::kAllBarriersFirst) {
    init_other_barriers(cta);
    publish_barriers();
  }
  if (early) load_early_stages<kPacked>(cta);
  const uint32_t loaded = early ? kEarlyStages<kPacked, Tile> : 1;
#pragma unroll kUnroll
  for (uint32_t k_block = 1; k_block < Tile::kStages; ++k_block) {
    if (k_block >= loaded && k_block < cta.k.k_blocks) load_stage<kPacked>(cta, k_block, k_block);
  }
}
template <typename Tile>
__device__ void load_first_k_blocks(const Cta<Tile>& cta) {
  if (are_packed(cta.p)) {
    load_first_k_blocks_of<true>(cta);
  } else {
    load_first_k_blocks_of<false>(cta);
  }
}

// Loads the other k-blocks of a tile. For a stage that has never been filled the wait passes at
// once.
template <typename Tile>
__device__ void load_remaining_k_blocks(const Cta<Tile>& cta) {
  const uint32_t loaded = cta.walk.iteration == 0 ? Tile::kStages : 0;
  auto at = cta.walk.begin;
  at.advance(loaded);
  for (uint32_t k_block = loaded; k_block < cta.k.k_blocks; ++k_block, at.advance()) {
    ptx::mbarrier_wait(cta.at.empty(at.stage), at.parity ^ 1);
    if (are_packed(cta.p)) {
      load_stage<true>(cta, k_block, at.stage);
    } else {
      load_stage<false>(cta, k_block, at.stage);
    }
  }
}

}  // namespace nvfp4
