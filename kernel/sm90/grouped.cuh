// SPDX-License-Identifier: MIT
// Grouped products: which tiles a CTA computes, and the warps that load them. One warp searches the
// groups, some tiles ahead of all others, and lists the tiles in a ring of shared memory. With
// hundreds of groups the search takes as long as several k-blocks.
#pragma once

#include <cstdint>

#include "kernel/common/groups.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/linear_scales.cuh"
#include "kernel/sm90/load.cuh"

namespace nvfp4 {

// Values that are the same for all tiles of the CTA. Each tile has all of K.
template <typename Tile>
__device__ Cta90<Tile> grouped_cta(const Sm90Params& p, uint32_t smem) {
  return {p, smem, 0, {}, (p.k + kScaleTileK - 1) / kScaleTileK, 0, stages_of_k(p), 0};
}

// ---- The list ----------------------------------------------------------------------------------

// The barrier for the CTA's i-th tile, counted from 0.
template <typename Tile>
__device__ uint32_t list_full(uint32_t smem, uint32_t number) {
  return smem + Tile::kListFullAt + number % kListedTiles * 8;
}
template <typename Tile>
__device__ uint32_t list_empty(uint32_t smem, uint32_t number) {
  return smem + Tile::kListEmptyAt + number % kListedTiles * 8;
}
template <typename Tile>
__device__ uint32_t listed(uint32_t smem, uint32_t number) {
  return smem + Tile::kListAt + number % kListedTiles * 16;
}

// The threads that load weights and tokens release a tile of the list after reading it for the last
// time, each consumer warp after storing the tile's sums.
template <typename Tile>
__device__ void init_list(uint32_t smem) {
  for (uint32_t i = 0; i < kListedTiles; ++i) {
    ptx::mbarrier_init(list_full<Tile>(smem, i), 1);
    ptx::mbarrier_init(list_empty<Tile>(smem, i), Tile::kConsumerWarps + 2);
  }
}

// Sets the CTA's tile. False if the previous one was the last.
template <typename Tile>
__device__ bool read_listed(Cta90<Tile>& cta, uint32_t number) {
  const uint4 tile = ptx::ld_shared_v4_b32(listed<Tile>(cta.smem, number));
  cta.tile = {tile.x, tile.y, tile.z, tile.w};
  return tile.w != 0;
}
template <typename Tile>
__device__ bool await_listed(Cta90<Tile>& cta, uint32_t number) {
  ptx::mbarrier_wait(list_full<Tile>(cta.smem, number), number / kListedTiles % 2);
  return read_listed(cta, number);
}
template <typename Tile>
__device__ void give_back_listed(const Cta90<Tile>& cta, uint32_t number) {
  ptx::mbarrier_arrive(list_empty<Tile>(cta.smem, number));
}

// Called by a whole warp. It finds the first tile before the barriers exist.
template <typename Tile>
struct TileLister {
  const Sm90Params& p;
  uint32_t index = blockIdx.x;
  GroupWalk walk;
  TileCoordinate tile;

  // With tokens in the workspace the previous grid is nvfp4_tokens_sm90, which starts after the
  // grids that may write the groups' rows.
  __device__ void begin() {
    if (!Tile::kWorkspaceTokens) ptx::griddepcontrol_wait();
    find();
  }

  __device__ void find() {
    if (!walk.tile_at<Tile::kTokens>(groups_of<Tile>(p), p.tiles_n, false, index, &tile)) {
      tile.row_end = 0;
    }
  }

  __device__ void run(uint32_t smem) {
    for (uint32_t number = 0;; ++number) {
      ptx::mbarrier_wait(list_empty<Tile>(smem, number), (number / kListedTiles + 1) % 2);
      if (lane_number() == 0) {
        ptx::st_shared_v4_b32(
            listed<Tile>(smem, number),
            make_uint4(tile.token_tile, tile.weight_tile, tile.batch, tile.row_end));
        ptx::mbarrier_arrive(list_full<Tile>(smem, number));
      }
      __syncwarp();
      if (tile.row_end == 0) return;
      index += gridDim.x;
      find();
    }
  }
};

// ---- Weights -----------------------------------------------------------------------------------

template <typename Tile>
__device__ void start_grouped(const Cta90<Tile>& cta) {
  note_clock(kClock_begin_ns);
  note_clock(kClock_start);
  init_stage_barriers(cta, 0, Tile::kStages);
  ptx::mbarrier_init(cta.k_tail_full(), 1);
  init_other_barriers(cta);
  init_list<Tile>(cta.smem);
  publish_barriers();
  ptx::griddepcontrol_launch_dependents();
  ptx::prefetch_tensormap(&cta.p.weights);
  ptx::prefetch_tensormap(&cta.p.tokens);
  if (Tile::kGated) ptx::prefetch_tensormap(&gated_params(cta.p).weights2);
}

// One thread does what start_weights and load_remaining_weights do, for the tiles of a list.
template <typename Tile>
__device__ void load_listed_weights(Cta90<Tile> cta) {
  RingPosition<Tile::kStages> arrived, at;
  at.parity = 1;  // the first round finds every stage empty
  uint32_t asked = 0;
  note_clock(kClock_first_load);
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    give_back_listed(cta, number);
#pragma unroll 1
    for (uint32_t i = 0; i < cta.count; ++i, at.advance()) {
      if (Tile::kStagesFirst < Tile::kStagesAhead && asked == Tile::kStagesFirst) {
        ptx::griddepcontrol_wait();  // see kStagesFirst
      }
      if (asked >= Tile::kStagesAhead) {
        ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
        arrived.advance();
      } else {
        ++asked;
      }
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      load_stage(cta, i, at.stage);
    }
    if (k_ends_inside_step<Tile>(cta.p)) cta.k_tail_parity ^= 1;
  }
}

// The same by all lanes, for linear scales of weights.
template <typename Tile>
__device__ void load_listed_linear_weights(Cta90<Tile> cta, bool leads, uint32_t lane) {
  RingPosition<Tile::kStages> arrived, at;
  at.parity = 1;
  uint32_t asked = 0;
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
#pragma unroll 1
    for (uint32_t i = 0; i < cta.count; ++i, at.advance()) {
      if (kGroupsShareSlots<Tile> && asked++ >= kLinearStagesAhead<Tile>) {
        ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
        arrived.advance();
      }
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      if (leads) load_codes(cta, i, at.stage);
      load_linear_scales(cta, i, at.stage, lane);
    }
    __syncwarp();
    if (leads) give_back_listed(cta, number);
  }
}

template <typename Tile>
__device__ void grouped_weight_warp(const Cta90<Tile>& cta, uint32_t lane) {
  const bool leads = ptx::elect_sync();
  if (has_linear_weight_scales<Tile>(cta.p)) {
    load_listed_linear_weights(cta, leads, lane);
  } else if (leads) {
    load_listed_weights(cta);
  }
}

// ---- Tokens ------------------------------------------------------------------------------------

// The slots of tokens that a tile's sums overwrite. TMA fills the others for the next tile before
// the sums are stored.
template <typename Tile>
constexpr uint32_t kSlotsOfSums =
    (Tile::kSumsAt + Tile::kPartialBytes + Tile::kSlotBytes - 1) / Tile::kSlotBytes;

// Waits until the sums of the tile before `number` are stored: its place in the list is empty then.
// The parity says which phase is meant, even if no earlier tile waited. The phase before it is
// over, because that tile could not have been listed otherwise. The phase after it needs this
// thread to give back tile number - 1 + kListedTiles. It has not read that one yet: `number` is the
// last tile that it has given back.
template <typename Tile>
__device__ void await_sums_before(const Cta90<Tile>& cta, uint32_t number) {
  static_assert(kListedTiles >= 2, "the phase after it must not be the one of tile `number`");
  const uint32_t before = number - 1;
  ptx::mbarrier_wait(list_empty<Tile>(cta.smem, before), before / kListedTiles % 2);
}

// One thread loads sub-tiles from the workspace, [k-block][row][256 elements in their order], or
// straight from A. A and D of all groups are one matrix.
template <typename Tile>
__device__ void load_listed_tokens(Cta90<Tile> cta) {
  constexpr uint32_t kSlotK = Tile::kSlotSteps * kScaleTileK;
  const uint32_t slots = cta.count * Tile::kSlotsPerStage;
  constexpr uint32_t kBoxRows = rows_of_grouped_box(Tile::kTokens);
  RingPosition<Tile::kSlots> at;
  uint32_t awaited = 0;  // all sums of tiles before this one are stored
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    give_back_listed(cta, number);
    const uint32_t rows = min(Tile::kTokens, cta.tile.row_end - cta.tile.token_tile);
    const uint32_t boxes = (rows + kBoxRows - 1) / kBoxRows;
#pragma unroll 1
    for (uint32_t i = 0; i < slots; ++i, at.advance()) {
      if constexpr (!Tile::kWholeSums) {
        if (at.stage < kSlotsOfSums<Tile> && awaited < number) {
          await_sums_before(cta, number);
          awaited = number;
        }
      }
      wait_for_slot(cta, at);
      const uint32_t bar = cta.tokens_full(at.stage);
      ptx::mbarrier_arrive_expect_tx(bar, boxes * (kBoxRows * Tile::kSlotSteps * kTokenRowBytes));
      const uint32_t stage = Tile::kNaturalTokens ? 0 : i / Tile::kSlotsPerStage;
      const uint32_t k = (Tile::kNaturalTokens ? i : i % Tile::kSlotsPerStage) * kSlotK;
#pragma unroll 1
      for (uint32_t row = 0; row < boxes * kBoxRows; row += kBoxRows) {
        const uint32_t to = cta.tokens(at.stage) + row * kTokenRowBytes;
#pragma unroll
        for (uint32_t step = 0; step < Tile::kSlotSteps; ++step) {
          ptx::cp_async_bulk_tensor_3d(to + step * Tile::kSubTileBytes, &cta.p.tokens,
                                       k + step * kScaleTileK, cta.tile.token_tile + row, stage,
                                       bar, ptx::kEvictLast);
        }
      }
    }
  }
}

}  // namespace nvfp4
