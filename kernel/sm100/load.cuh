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
template <typename Tile>
__device__ void expect_stage(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kCtas == 2) return expect_stage_of_pair(cta, k_block, stage);
  const uint32_t units = scale_tiles(cta.p, cta.k.steps(k_block));
  const uint32_t code_bytes = cta.are_packed() ? 0 : Tile::kWeightBytes;
  const uint32_t weight_bytes = code_bytes + units * cta.p.weight_unit_bytes;
  ptx::mbarrier_arrive_expect_tx(
      cta.at.full(stage),
      Tile::kMatrices * weight_bytes + cta.token_bytes() + units * kScaleTileBytes);
}

// Each weight is used once per row of token tiles.
template <typename Tile>
__device__ void load_codes(const Cta<Tile>& cta, uint32_t to, const TensorMap& codes,
                           uint32_t k_block, uint32_t stage) {
  if (cta.are_packed()) return;
  ptx::cp_async_bulk_tensor_3d(to, &codes, cta.k.first_byte(k_block), cta.first_weight(),
                               cta.tile().batch, cta.at.full(stage), ptx::kEvictFirst);
}

// Loads the scales behind the codes, or packed weights. `units` are those of all batches.
template <typename Tile>
__device__ void load_units_of_matrix(const Cta<Tile>& cta, uint32_t to, const uint8_t* units,
                                     uint32_t k_block, uint32_t stage) {
  const Sm100Params& p = cta.p;
  load_units(cta, to + (cta.are_packed() ? 0 : Tile::kWeightBytes),
             units + cta.tile().batch * p.weight_scales_batch_bytes, p.weight_unit_bytes,
             cta.tile().weight_tile, k_block, ptx::kEvictFirst, cta.at.full(stage));
}

// Loads b2 of a gated product.
template <typename Tile>
__device__ void load_second_matrix(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kGated) {
    const Sm100GatedParams& gated = gated_params(cta.p);
    const uint32_t to = cta.at.weights(stage) + Tile::kMatrixBytes;
    load_codes(cta, to, gated.weights2, k_block, stage);
    load_units_of_matrix(cta, to, gated.weight_scales2, k_block, stage);
  }
}

template <typename Tile>
__device__ void load_weights(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  if constexpr (Tile::kCtas == 2) return load_weights_of_pair(cta, k_block, stage);
  load_codes(cta, cta.at.weights(stage), cta.p.weights, k_block, stage);
  load_units_of_matrix(cta, cta.at.weights(stage), cta.p.weight_scales, k_block, stage);
  load_second_matrix(cta, k_block, stage);
}

// The same for the CTA's first k-block, with one copy first.
//
// K is not 0, which the compiler does not know. The branch keeps it from computing the addresses of
// everything else before that copy.
template <typename Tile>
__device__ void load_first_weights(const Cta<Tile>& cta) {
  const bool units_first = Tile::kCtas == 1 && cta.are_packed();
  if constexpr (Tile::kCtas == 2) {
    load_codes_of_pair(cta, 0, 0);
  } else if (units_first) {
    load_units_of_matrix(cta, cta.at.weights(0), cta.p.weight_scales, 0, 0);
  } else {
    load_codes(cta, cta.at.weights(0), cta.p.weights, 0, 0);
  }
  if (cta.p.k == 0) return;
  if constexpr (Tile::kCtas == 2) return load_scales_of_pair(cta, 0, 0);
  if (!units_first) {
    load_units_of_matrix(cta, cta.at.weights(0), cta.p.weight_scales, 0, 0);
  }
  load_second_matrix(cta, 0, 0);
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

template <typename Tile>
__device__ void load_stage(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  expect_stage(cta, k_block, stage);
  load_weights(cta, k_block, stage);
  load_tokens(cta, k_block, stage);
}

// Number of stages whose weights are loaded before the wait for earlier grids, if no earlier grid
// writes weights. It is small: if that wait returns at once, the tokens of stage 0 queue behind
// every earlier load. Packed weights of all stages are loaded, so that a launch beside an earlier
// one has as many bytes in flight as the ring holds.
constexpr uint32_t kEarlyStages = 3;
template <typename Tile>
__device__ uint32_t early_stages(const Cta<Tile>& cta) {
  static_assert(kEarlyStages <= Tile::kStages);
  return cta.are_packed() ? Tile::kStages : kEarlyStages;
}

// Calls `load` for each of those stages that has a k-block, from `first` on.
template <typename Tile, typename Load>
__device__ void each_early_stage(const Cta<Tile>& cta, uint32_t first, const Load& load) {
  const uint32_t end = min(early_stages(cta), cta.k.k_blocks);
#pragma unroll
  for (uint32_t k_block = first; k_block < kEarlyStages; ++k_block) {
    if (k_block < end) load(k_block);
  }
#pragma unroll 1
  for (uint32_t k_block = kEarlyStages; k_block < end; ++k_block) load(k_block);
}

// Loads the weights of these stages, then waits for earlier grids, then loads their tokens. The
// weights of stage 0 have been loaded.
template <typename Tile>
__device__ void load_early_stages(const Cta<Tile>& cta) {
  each_early_stage(cta, 1, [&](uint32_t k_block) {
    expect_stage(cta, k_block, k_block);
    load_weights(cta, k_block, k_block);
  });
  ptx::griddepcontrol_wait();
  each_early_stage(cta, 0, [&](uint32_t k_block) { load_tokens(cta, k_block, k_block); });
}

// Whether weights are loaded before earlier grids have ended.
template <typename Tile>
__device__ bool loads_early(const Sm100Params& p) {
  return !Tile::kGrouped && p.weights_are_static != 0;
}

// Loads the first k-block of every stage before anything else happens in the CTA. Earlier grids may
// still run until griddepcontrol.wait, so everything that they may write is loaded after it: tokens
// and row ends of groups, and weights unless the caller promised that they are static. D depends on
// tokens, so its stores come later still. A CTA of a grouped product has waited before it looked
// for its tile.
template <typename Tile>
__device__ void load_first_k_blocks(const Cta<Tile>& cta) {
  note_clock(kClock_first_load);
  const bool early = loads_early<Tile>(cta.p);
  if (!Tile::kGrouped && !early) ptx::griddepcontrol_wait();
  load_first_weights(cta);
  expect_stage(cta, 0, 0);
  if (!early) load_tokens(cta, 0, 0);
  if constexpr (!Tile::kAllBarriersFirst) {
    init_other_barriers(cta);
    publish_barriers();
  }
  if (early) load_early_stages(cta);
  const uint32_t loaded = early ? early_stages(cta) : 1;
#pragma unroll
  for (uint32_t k_block = 1; k_block < Tile::kStages; ++k_block) {
    if (k_block >= loaded && k_block < cta.k.k_blocks) load_stage(cta, k_block, k_block);
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
    load_stage(cta, k_block, at.stage);
  }
}

}  // namespace nvfp4
