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
#include "kernel/sm90/tokens_kernel.cuh"

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
  return smem + Tile::kListFullAt + number % Tile::kListedTiles * 8;
}
template <typename Tile>
__device__ uint32_t list_empty(uint32_t smem, uint32_t number) {
  return smem + Tile::kListEmptyAt + number % Tile::kListedTiles * 8;
}
template <typename Tile>
__device__ uint32_t listed(uint32_t smem, uint32_t number) {
  return smem + Tile::kListAt + number % Tile::kListedTiles * 16;
}
// The number of the tile's first row among the rows of all groups.
template <typename Tile>
__device__ uint32_t listed_row(uint32_t smem, uint32_t number) {
  return smem + Tile::kListRowsAt + number % Tile::kListedTiles * 4;
}

// Each thread that reads a tile of the list gives it back: a loader's after reading it for the last
// time, a consumer's after storing the tile's sums.
template <typename Tile>
__device__ uint32_t list_readers(const Cta90<Tile>& cta) {
  const uint32_t of_weights = has_linear_weight_scales<Tile>(cta.p) ? 32 : 1;
  const uint32_t of_tokens = Tile::kWorkspaceTokens ? 32 : 1;
  return Tile::kConsumerWarps * 32 + of_weights + of_tokens;
}
template <typename Tile>
__device__ void init_list(const Cta90<Tile>& cta) {
  for (uint32_t i = 0; i < Tile::kListedTiles; ++i) {
    ptx::mbarrier_init(list_full<Tile>(cta.smem, i), 1);
    ptx::mbarrier_init(list_empty<Tile>(cta.smem, i), list_readers(cta));
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
  ptx::mbarrier_wait(list_full<Tile>(cta.smem, number), number / Tile::kListedTiles % 2);
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
  GroupWalk<Tile::kTokens> walk;
  TileCoordinate tile;

  // With tokens in the workspace the previous grid is nvfp4_group_tokens_sm90, which starts after
  // the grids that may write the groups' rows.
  __device__ void begin() {
    if (!Tile::kWorkspaceTokens) ptx::griddepcontrol_wait();
    walk.begin(groups_of(p), p.tiles_n);
    find();
  }

  __device__ void find() {
    if (!walk.tile_at(groups_of(p), p.tiles_n, index, &tile)) tile.row_end = 0;
  }

  // False if there was no tile more, which it lists too.
  __device__ bool list(uint32_t smem, uint32_t number) const {
    ptx::mbarrier_wait(list_empty<Tile>(smem, number), (number / Tile::kListedTiles + 1) % 2);
    if (lane_number() == 0) {
      ptx::st_shared_v4_b32(
          listed<Tile>(smem, number),
          make_uint4(tile.token_tile, tile.weight_tile, tile.batch, tile.row_end));
      if (Tile::kWorkspaceTokens) {
        ptx::st_shared_b32(listed_row<Tile>(smem, number), tile.scale_row);
      }
      ptx::mbarrier_arrive(list_full<Tile>(smem, number));
    }
    __syncwarp();
    return tile.row_end != 0;
  }

  __device__ void advance() {
    index += gridDim.x;
    find();
  }

  __device__ void run(uint32_t smem) {
    for (uint32_t number = 0; list(smem, number); ++number) advance();
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
  init_list(cta);
  publish_barriers();
  ptx::griddepcontrol_launch_dependents();
  ptx::prefetch_tensormap(&cta.p.weights);
  ptx::prefetch_tensormap(&cta.p.tokens);
  if (Tile::kGated) ptx::prefetch_tensormap(&gated_params(cta.p).weights2);
}

// Where the next k-block goes, and which one is the last that has to have arrived before.
template <typename Tile>
struct WeightRing {
  RingPosition<Tile::kStages> arrived, at{0, 1};  // the first round finds every stage empty
  uint32_t asked = 0;
};

// Waits until a k-block may be requested, as start_weights and load_remaining_weights do.
template <typename Tile>
__device__ void await_stage(const Cta90<Tile>& cta, WeightRing<Tile>& ring) {
  if (Tile::kStagesFirst < Tile::kStagesAhead && ring.asked == Tile::kStagesFirst) {
    ptx::griddepcontrol_wait();  // see kStagesFirst
  }
  if (ring.asked >= Tile::kStagesAhead) {
    ptx::mbarrier_wait(cta.weights_full(ring.arrived.stage), ring.arrived.parity);
    ring.arrived.advance();
  } else {
    ++ring.asked;
  }
  ptx::mbarrier_wait(cta.weights_empty(ring.at.stage), ring.at.parity);
}

// One thread loads a tile of the list.
template <typename Tile>
__device__ void load_weights_of_listed(Cta90<Tile>& cta, WeightRing<Tile>& ring) {
#pragma unroll 1
  for (uint32_t i = 0; i < cta.count; ++i, ring.at.advance()) {
    await_stage(cta, ring);
    load_stage(cta, i, ring.at.stage);
  }
  if (k_ends_inside_step<Tile>(cta.p)) cta.k_tail_parity ^= 1;
}

// All lanes do, for linear scales of weights.
template <typename Tile>
__device__ void load_linear_weights_of_listed(const Cta90<Tile>& cta, WeightRing<Tile>& ring,
                                              bool leads, uint32_t lane) {
#pragma unroll 1
  for (uint32_t i = 0; i < cta.count; ++i, ring.at.advance()) {
    await_stage(cta, ring);
    load_linear_stage(cta, i, ring.at.stage, leads, lane);
  }
}

template <typename Tile>
__device__ void load_listed_weights(Cta90<Tile> cta) {
  WeightRing<Tile> ring;
  note_clock(kClock_first_load);
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    give_back_listed(cta, number);
    load_weights_of_listed(cta, ring);
  }
}

template <typename Tile>
__device__ void load_listed_linear_weights(Cta90<Tile> cta, bool leads, uint32_t lane) {
  WeightRing<Tile> ring;
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    give_back_listed(cta, number);
    load_linear_weights_of_listed(cta, ring, leads, lane);
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
  static_assert(Tile::kListedTiles >= 2, "the phase after it must not be the one of tile `number`");
  const uint32_t before = number - 1;
  ptx::mbarrier_wait(list_empty<Tile>(cta.smem, before), before / Tile::kListedTiles % 2);
}

// One thread loads a tile's tokens, from the row `from` of the workspace on, [k-block][row][256
// elements in their order], or straight from A. A and D of all groups are one matrix.
template <typename Tile>
__device__ void load_tokens_of_listed(const Cta90<Tile>& cta, uint32_t number, uint32_t from,
                                      uint32_t rows, RingPosition<Tile::kSlots>& at) {
  constexpr uint32_t kSlotK = Tile::kSlotSteps * kScaleTileK;
  constexpr uint32_t kBoxRows = rows_of_grouped_box(Tile::kTokens);
  const uint32_t slots = cta.count * Tile::kSlotsPerStage;
  const uint32_t boxes = (rows + kBoxRows - 1) / kBoxRows;
  bool awaits_sums = !Tile::kWholeSums && number > 0;
#pragma unroll 1
  for (uint32_t i = 0; i < slots; ++i, at.advance()) {
    if (awaits_sums && at.stage < kSlotsOfSums<Tile>) {
      await_sums_before(cta, number);
      awaits_sums = false;
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
                                     k + step * kScaleTileK, from + row, stage, bar,
                                     ptx::kEvictLast);
      }
    }
  }
}

template <typename Tile>
__device__ void load_listed_tokens(Cta90<Tile> cta) {
  RingPosition<Tile::kSlots> at;
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    give_back_listed(cta, number);
    const uint32_t rows = min(Tile::kTokens, cta.tile.row_end - cta.tile.token_tile);
    load_tokens_of_listed(cta, number, cta.tile.token_tile, rows, at);
  }
}

// All lanes decode a slot's part of a tile's rows, which have no place in the workspace: word j of
// each 64 elements c of a k-block, in the order of tokens_kernel.cuh.
template <typename Tile>
__device__ void decode_slot(const Cta90<Tile>& cta, uint32_t i, uint32_t rows, uint32_t slot,
                            uint32_t lane) {
  const Sm90Params& p = cta.p;
  constexpr uint32_t kWords = 2 * Tile::kSlotSteps;  // j
  const uint32_t stage = i / Tile::kSlotsPerStage, first = i % Tile::kSlotsPerStage * kWords;
  const uint32_t c = lane % 4, step = stage * Tile::kSteps + c;
#pragma unroll 1
  for (uint32_t piece = lane / 4; piece < rows * kWords; piece += 8) {
    const uint32_t row = piece / kWords, j = piece % kWords;
    const uint32_t of_step = first + j, from = cta.tile.token_tile + row;
    const bool there = step * kPiecesPerStage + of_step < p.k / 8;
    const uint8_t* codes = p.token_codes + from * p.token_row_bytes +
                           static_cast<uint64_t>(step) * (kScaleTileK / 2) + of_step * 4;
    const uint8_t* scales = linear_token_scales(p, 0, from, step).first + of_step / 2;
    const uint32_t word = ptx::ld_global_b32_if(codes, there);
    const uint32_t scale = decode_scale_pair(ptx::ld_global_u8_if(scales, there));
    uint32_t h[4];
    decode_codes(word, scale, 0, Shifts(), h);
    const uint32_t to = slot + j / 2 * Tile::kSubTileBytes + row * kTokenRowBytes + c * 4;
#pragma unroll
    for (uint32_t n = 0; n < 4; ++n) {
      ptx::st_shared_b32(to + ((j % 2 * 4 + n) ^ row % 8) * 16, h[n]);
    }
  }
}

template <typename Tile>
__device__ void decode_tokens_of_listed(const Cta90<Tile>& cta, uint32_t number, uint32_t rows,
                                        uint32_t lane, RingPosition<Tile::kSlots>& at) {
  const uint32_t slots = cta.count * Tile::kSlotsPerStage;
  if (!Tile::kWholeSums && number > 0) await_sums_before(cta, number);
#pragma unroll 1
  for (uint32_t i = 0; i < slots; ++i, at.advance()) {
    wait_for_slot(cta, at);
    decode_slot(cta, i, rows, cta.tokens(at.stage), lane);
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(cta.tokens_full(at.stage));
  }
}

// The same for tokens in the workspace, by a whole warp. If there are more rows than it holds
// (Plan::token_rows), the warp decodes a tile's tokens itself. That takes several times as long as
// the products.
template <typename Tile>
__device__ void load_or_decode_listed_tokens(Cta90<Tile> cta, uint32_t lane) {
  const bool leads = ptx::elect_sync();
  const uint32_t slots = cta.count * Tile::kSlotsPerStage;
  for (uint32_t number = 0; await_listed(cta, number); ++number) {
    const uint32_t from = ptx::ld_shared_b32(listed_row<Tile>(cta.smem, number));
    const uint32_t rows = min(Tile::kTokens, cta.tile.row_end - cta.tile.token_tile);
    auto at = RingPosition<Tile::kSlots>::at(number * slots);
    give_back_listed(cta, number);
    if (from + rows > cta.p.decoded_rows) {
      decode_tokens_of_listed(cta, number, rows, lane, at);
    } else if (leads) {
      load_tokens_of_listed(cta, number, from, rows, at);
    }
    __syncwarp();
  }
}

template <typename Tile>
__device__ void grouped_token_warp(const Cta90<Tile>& cta, uint32_t lane) {
  if constexpr (Tile::kWorkspaceTokens) {
    ptx::griddepcontrol_wait();  // the pre-pass, and other data of earlier grids
    load_or_decode_listed_tokens(cta, lane);
  } else if (ptx::elect_sync()) {
    ptx::griddepcontrol_wait();  // tokens, and other data of earlier grids
    load_listed_tokens(cta);
  }
}

}  // namespace nvfp4
