// SPDX-License-Identifier: MIT
// What every role of a CTA of gemm.cu needs: the tile, the K partition, and shared memory.
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/groups.cuh"
#include "kernel/common/tiles.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

// Named barriers of a CTA; 0 is the barrier of all threads.
constexpr uint32_t kConsumerBarrier = 1, kInitBarrier = 2, kClearBarrier = 3;
constexpr uint32_t kHalfBarrier = 4;  // and 5: of each half of the consumer warps (sums/fields.cuh)

// Tiles of at least this many tokens have code that speeds up the general epilogue of many rows.
constexpr uint32_t kManyTokens = 128;

// Tokens of a tile that each of `split` CTAs stores; the last CTAs may have fewer.
__device__ constexpr uint32_t slice_of(uint32_t tokens, uint32_t split) {
  return (tokens + split - 1) / split;
}

__device__ inline uint32_t tiles_of_all(const Sm90Params& p) {
  return p.tiles_m * p.tiles_n * p.batches;
}

// Number of tiles that a single CTA computes alone. Each tile after them belongs to a cluster.
__device__ inline uint32_t whole_tiles(const Sm90Params& p) {
  return p.split == 1 ? UINT32_MAX : p.whole_tiles;
}

// Computed from the parameters at each use, so that it occupies no register.
__device__ inline uint32_t stages_of_k(const Sm90Params& p) {
  return (p.k + kSm90StageK - 1) / kSm90StageK;
}

// A CTA computes its tiles one after the other: every gridDim.x-th of the unsplit ones, and the one
// that its cluster shares, if any. The shared tile comes first if its sums are pushed: the place
// for them is still unused, and loads continue meanwhile. Otherwise it comes last, when the rings
// are drained. A grid has one CTA per SM (host/plan/plan.cc) or one per tile. If there are unsplit
// and shared tiles, every CTA has an unsplit one. If other work occupies an SM, the CTA that waits
// for it still has all of its tiles to do.
constexpr uint32_t kNoTile = UINT32_MAX;

// Even shares: the CTAs of a grid of 132 take equally many k-blocks of the tiles that fill no whole
// wave. A share is at most as long as a tile, so it has parts of at most two. Parts meet in the
// workspace, and the CTA that brings the last one of a tile adds them in the order of K
// (sums/even.cuh).
template <typename Tile>
constexpr bool kTakesEvenShares =
    Tile::kWholeSums && !Tile::kGrouped && !Tile::kGated && Tile::kTokens < 256;
template <typename Tile>
__device__ bool shares_evenly(const Sm90Params& p) {
  return kTakesEvenShares<Tile> && p.even_each != 0;
}

// Own parts (Tile::kAddsOwnParts): a CTA computes all of K, but adds it as a cluster of `own_parts`
// CTAs with tiles of four groups does. A piece is what such a group has of its CTA's part, every
// fourth k-block. Its sums are complete before they are added to others (sums/parts.cuh).
constexpr uint32_t kPiecesOfPart = 4;

// The k-blocks of a CTA, counted from the first one of the tile whole_tiles.
struct EvenShare {
  uint32_t begin, end;
  __device__ EvenShare(const Sm90Params& p, uint32_t cta)
      : begin(cta * p.even_each + min(cta, p.even_more)),
        end(begin + p.even_each + (cta < p.even_more ? 1 : 0)) {}
};
__device__ inline uint32_t first_of_share(const Sm90Params& p) {
  return p.whole_tiles + EvenShare(p, blockIdx.x).begin / stages_of_k(p);
}
__device__ inline uint32_t next_of_share(const Sm90Params& p, uint32_t index) {
  const uint32_t end = (index + 1 - p.whole_tiles) * stages_of_k(p);
  return end < EvenShare(p, blockIdx.x).end ? index + 1 : kNoTile;
}

__device__ inline uint32_t tile_of_cluster(const Sm90Params& p) {
  const uint32_t index = p.whole_tiles + ptx::clusterid_x();
  return index < tiles_of_all(p) ? index : kNoTile;
}

template <typename Tile>
__device__ uint32_t first_tile(const Sm90Params& p) {
  if constexpr (kTakesEvenShares<Tile>) {
    if (p.even_each != 0 && p.whole_tiles == 0) return first_of_share(p);
  }
  if (p.split == 1) return blockIdx.x;
  if (!Tile::kSeveralTiles || p.whole_tiles == 0) return ptx::clusterid_x();
  const uint32_t shared = tile_of_cluster(p);
  return Tile::kPushesSums && shared != kNoTile ? shared : blockIdx.x;
}

// The entries for any product of such tiles decode both kinds of scales.
template <typename Tile>
constexpr bool kTakesUe8m0 = Tile::kUe8m0Weights && !Tile::kPlain;

// With two loops over K, ptxas spills values that depend on the grid if it can compute them early.
template <typename Tile>
__device__ uint32_t own_index() {
  return kTakesUe8m0<Tile> ? ptx::ctaid_x() : blockIdx.x;
}
template <typename Tile>
__device__ uint32_t ctas_of_grid() {
  return kTakesUe8m0<Tile> ? ptx::nctaid_x() : gridDim.x;
}

template <typename Tile>
__device__ uint32_t next_tile(const Sm90Params& p, uint32_t index) {
  if (!Tile::kSeveralTiles || (p.split > 1 && p.whole_tiles == 0)) return kNoTile;
  if constexpr (kTakesEvenShares<Tile>) {
    if (p.even_each != 0) {
      if (index >= p.whole_tiles) return next_of_share(p, index);
      const uint32_t whole = index + ctas_of_grid<Tile>();
      return whole < p.whole_tiles ? whole : first_of_share(p);
    }
  }
  if (p.split > 1 && index >= p.whole_tiles) return Tile::kPushesSums ? own_index<Tile>() : kNoTile;
  const uint32_t next = index + ctas_of_grid<Tile>();
  if (next < (p.split == 1 ? tiles_of_all(p) : p.whole_tiles)) return next;
  return Tile::kPushesSums || p.split == 1 ? kNoTile : tile_of_cluster(p);
}

// Whether an entry for gated products of groups takes the fast epilogue, which stores D in 16 bits.
template <typename Tile>
__device__ bool gates_groups(const Sm90Params& p) {
  return Tile::kGrouped && !Tile::kWholeSums && p.epilogue.kind == kEpilogueColumns;
}

// Whether a launch needs more than the fast epilogue. The host never launches a tile's fast entry
// for such a product (host/family/sm90.cc), so that entry has no code for it.
template <typename Tile>
__device__ bool has_general_epilogue(const Sm90Params& p) {
  if (Tile::kGated) return !Tile::kPlain && !gates_groups<Tile>(p);
  return !Tile::kPlain && p.epilogue.kind >= kEpilogueColumns;
}
// Scalars on the device, tensor scales and a bias per column. Only the fast entry applies them to
// the sums in registers. Gated products have two of each (sums/gate.cuh).
template <typename Tile>
__device__ bool has_columns_terms(const Sm90Params& p) {
  return Tile::kScaledD || (Tile::kPlain && !Tile::kGated && p.epilogue.kind >= kEpilogueColumns);
}
// D in fp32, which the fast entry stores without rounding.
template <typename Tile>
__device__ bool has_float_d(const Sm90Params& p) {
  if (Tile::kFields) return p.epilogue.d_type == kTypeF32;
  return Tile::kPlain && !Tile::kGated && !Tile::kScaledD && p.epilogue.kind == kEpilogueF32;
}
// These include a tensor scale for each row of A.
template <typename Tile>
__device__ bool has_row_terms(const Sm90Params& p) {
  return has_columns_terms<Tile>(p) && p.epilogue.a_scale_per_row != 0;
}
template <typename Tile>
constexpr bool kTakesLinear = Tile::kLinear || !Tile::kPlain;
template <typename Tile>
__device__ bool has_linear_weight_scales(const Sm90Params& p) {
  return kTakesLinear<Tile> && !Tile::kPacked && p.weight_scales_linear != 0;
}
template <typename Tile>
__device__ bool has_linear_token_scales(const Sm90Params& p) {
  return kTakesLinear<Tile> && p.token_scales_linear != 0;
}
// Steps of 64 per tile of weight scales, as a shift: 1 if 32 elements share a scale instead of 16.
template <typename Tile>
__device__ uint32_t log2_steps_per_scale_tile(const Sm90Params& p) {
  return Tile::kMxfp4 || (kTakesUe8m0<Tile> && p.weight_format == kFormatMxfp4) ? 1 : 0;
}
template <typename Tile>
__device__ bool k_ends_inside_step(const Sm90Params& p) {
  return !Tile::kPlain && !Tile::kPacked && p.k % kScaleTileK != 0;
}

// The argument of an entry for gated products.
__device__ inline const Sm90GatedParams& gated_params(const Sm90Params& p) {
  return reinterpret_cast<const Sm90GatedParams&>(p);
}
// The groups in the argument of an entry for grouped products.
__device__ inline const GroupParams& groups_of(const Sm90Params& p) {
  return reinterpret_cast<const Sm90GroupedParams&>(p).groups;
}
// The host's alpha, or that of the group.
template <typename Tile>
__device__ float alpha_of(const Sm90Params& p, uint32_t batch) {
  return Tile::kGrouped ? alpha_of_group(groups_of(p).alpha, batch, p.alpha) : p.alpha;
}
template <typename Tile>
__device__ float alpha2_of(const Sm90Params& p, uint32_t batch) {
  const float alpha2 = gated_params(p).gate.alpha2;
  return Tile::kGrouped ? alpha_of_group(groups_of(p).alpha2, batch, alpha2) : alpha2;
}

// The element at which the product's bias begins, or that of the group.
template <typename Tile>
__device__ int64_t bias_first_of(const Sm90Params& p, uint32_t batch) {
  return Tile::kGrouped ? bias_of_group(groups_of(p), batch) : 0;
}

// Whether CTAs share tiles along K.
template <typename Tile>
__device__ bool splits_k(const Sm90Params& p) {
  return !Tile::kGrouped && p.split > 1;
}

// End of the rows of D that a tile may store.
template <typename Tile>
__device__ uint32_t row_end(const Sm90Params& p, const TileCoordinate& tile) {
  return Tile::kGrouped ? tile.row_end : p.m;
}

// Addresses are 32-bit shared-memory addresses.
template <typename Tile>
struct Cta90 {
  const Sm90Params& p;
  uint32_t smem;  // base of the map in tile.h
  uint32_t rank;  // rank in the cluster
  TileCoordinate tile;
  uint32_t k_steps;             // steps of 64 of the whole K; the last may end early
  uint32_t stage_begin, count;  // this CTA's k-blocks of the tile
  uint32_t index;               // index of the tile
  uint32_t piece = 0;           // of own parts
  uint32_t k_tail_parity = 0;   // parity of the next phase of k_tail_full

  __device__ uint32_t weights_full(uint32_t i) const { return smem + Tile::kWeightsFullAt + 8 * i; }
  __device__ uint32_t weights_empty(uint32_t i) const {
    return smem + Tile::kWeightsEmptyAt + 8 * i;
  }
  __device__ uint32_t tokens_full(uint32_t i) const { return smem + Tile::kTokensFullAt + 8 * i; }
  __device__ uint32_t tokens_empty(uint32_t i) const { return smem + Tile::kTokensEmptyAt + 8 * i; }
  __device__ uint32_t sums_full() const { return smem + Tile::kSumsFullAt; }
  __device__ uint32_t k_tail_full() const { return smem + Tile::kKTailFullAt; }
  __device__ uint32_t weights(uint32_t i) const {
    return smem + Tile::kWeightsAt + i * Tile::kWeightBytes;
  }
  __device__ uint32_t scales(uint32_t i) const {
    return smem + Tile::kScalesAt + i * Tile::kScaleBytes;
  }
  __device__ uint32_t tokens(uint32_t i) const {
    return smem + Tile::kTokensAt + i * Tile::kSlotBytes;
  }
  // Tokens of the tile that this CTA of a cluster stores.
  __device__ uint32_t own_tokens() const {
    const uint32_t slice = slice_of(Tile::kTokens, p.split);
    return min(slice, Tile::kTokens - min(rank * slice, Tile::kTokens));
  }
  // Whether the CTAs of the cluster share the tile, with one K partition each.
  __device__ bool shared() const { return !Tile::kGrouped && index >= whole_tiles(p); }
  // Whether other CTAs have parts of this tile in their even shares.
  __device__ bool has_part() const { return shares_evenly<Tile>(p) && count < stages_of_k(p); }
  // From one of this CTA's k-blocks to the next.
  __device__ uint32_t blocks_apart() const { return Tile::kAddsOwnParts ? kPiecesOfPart : 1; }
  // This CTA's i-th k-block, counted in all of K.
  __device__ uint32_t block(uint32_t i) const { return stage_begin + i * blocks_apart(); }
  // Steps of 64 in it: 4, or fewer in the last one of K.
  __device__ uint32_t steps(uint32_t i) const {
    return min(Tile::kSteps, k_steps - block(i) * Tile::kSteps);
  }
};

// K partition `rank` of `split`, a power of two or 3.
struct Partition {
  uint32_t begin, count;
  __device__ Partition(uint32_t stages, uint32_t split, uint32_t rank) {
    const uint32_t each = split == 3 ? stages / 3 : stages >> (31 - __clz(split));
    const uint32_t more = stages - each * split;
    begin = rank * each + min(rank, more);
    count = each + (rank < more ? 1 : 0);
  }
};

// Sets the k-blocks of a piece: every fourth of its part.
template <typename Tile>
__device__ void take_piece(Cta90<Tile>& cta, uint32_t piece) {
  const uint32_t group = piece % kPiecesOfPart;
  const Partition part(stages_of_k(cta.p), cta.p.own_parts, piece / kPiecesOfPart);
  cta.piece = piece;
  cta.stage_begin = part.begin + group;
  cta.count = (part.count + kPiecesOfPart - 1 - group) / kPiecesOfPart;
}
// Takes the tile's next piece that has k-blocks; false if there is none. The first piece has some.
template <typename Tile>
__device__ bool take_next_piece(Cta90<Tile>& cta) {
  if constexpr (Tile::kAddsOwnParts) {
    while (cta.piece + 1 < kPiecesOfPart * cta.p.own_parts) {
      take_piece(cta, cta.piece + 1);
      if (cta.count > 0) return true;
    }
  }
  return false;
}

// Records that consumers found stage i full. Compiles to nothing unless CLOCKS is set.
template <typename Tile>
__device__ void note_stage(const Cta90<Tile>& cta, uint32_t i) {
  if (i == 0 && threadIdx.x == 0) note_clock(kClock_first_full);
  if (i + 1 == cta.count && threadIdx.x % 32 == 0) note_last_clock(kClock_last_full);
}

// Skips the divisions of tile_at if there is nothing to divide, because the first load waits for
// them.
__device__ inline TileCoordinate tile_of_index(const Sm90Params& p, uint32_t index) {
  if (p.tiles_m == 1 && index < p.tiles_n) return {0, index, 0};
  return tile_at(p, index);
}

// Sets the tile and the CTA's K partition from the index.
template <typename Tile>
__device__ void take_tile(Cta90<Tile>& cta, uint32_t index) {
  const uint32_t stages = stages_of_k(cta.p), split = cta.p.split;
  cta.index = index;
  cta.tile = tile_of_index(cta.p, index);
  cta.stage_begin = 0;
  cta.count = stages;
  if constexpr (kTakesEvenShares<Tile>) {
    if (cta.p.even_each != 0 && index >= cta.p.whole_tiles) {
      const EvenShare share(cta.p, blockIdx.x);
      const uint32_t first = (index - cta.p.whole_tiles) * stages;  // of the tile
      cta.stage_begin = max(share.begin, first) - first;
      cta.count = min(share.end - first, stages) - cta.stage_begin;
      return;
    }
  }
  if constexpr (Tile::kAddsOwnParts) return take_piece(cta, 0);
  if (!cta.shared()) return;
  const Partition own(stages, split, cta.rank);
  cta.stage_begin = own.begin;
  cta.count = own.count;
}

template <typename Tile>
__device__ Cta90<Tile> make_cta(const Sm90Params& p, uint32_t smem, uint32_t index) {
  Cta90<Tile> cta{p, smem, ptx::cluster_ctarank(), {}, (p.k + kScaleTileK - 1) / kScaleTileK, 0,
                  0, 0};
  take_tile(cta, index);
  return cta;
}

// If warps decode tokens, all tiles of a CTA have the same tokens. The CTA's k-blocks are those of
// one K partition, or those of all of K once per tile.
template <typename Tile>
__device__ uint32_t stages_of_all_tiles(const Cta90<Tile>& cta) {
  uint32_t stages = cta.count;
  for (uint32_t index = cta.index; (index = next_tile<Tile>(cta.p, index)) != kNoTile;) {
    stages += stages_of_k(cta.p);
  }
  return stages;
}

// The k-block of a warp that takes every n-th one of all tiles. It passes an end of K at most once
// per step: with several tiles no K partition has fewer k-blocks than there are such warps
// (host/plan/variant.h). There is no branch, because the loads before one would have to finish.
template <bool kSeveralTiles>
struct StageOfAllTiles {
  uint32_t stage, end;  // of the K partition

  template <typename Tile>
  __device__ StageOfAllTiles(const Cta90<Tile>& cta, uint32_t i)
      : stage(cta.stage_begin), end(cta.stage_begin + cta.count) {
    advance(i, stages_of_k(cta.p));
  }
  template <typename Tile>
  __device__ uint32_t at(const Cta90<Tile>&, uint32_t) const {
    return stage;
  }
  __device__ void advance(uint32_t by, uint32_t all) {
    stage += by;
    const bool over = stage >= end;
    stage -= over ? end : 0;
    end = over ? all : end;
  }
};

// With a single tile the k-block's number suffices; token warps have no register to spare.
template <>
struct StageOfAllTiles<false> {
  template <typename Tile>
  __device__ StageOfAllTiles(const Cta90<Tile>&, uint32_t) {}
  template <typename Tile>
  __device__ uint32_t at(const Cta90<Tile>& cta, uint32_t i) const {
    return cta.stage_begin + i;
  }
  __device__ void advance(uint32_t, uint32_t) {}
};

}  // namespace nvfp4
