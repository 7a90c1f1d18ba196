// SPDX-License-Identifier: MIT
// What every role of a CTA of gemm.cu needs: the problem, the tile, the K partition, the place in
// the cluster, and shared memory.
#pragma once

#include <cstdint>

#include "kernel/common/group_list.cuh"
#include "kernel/common/groups.cuh"
#include "kernel/common/scaled_d.cuh"
#include "kernel/sm100/addresses.cuh"
#include "kernel/sm100/k_partition.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"
#include "kernel/sm100/walk.cuh"

namespace nvfp4 {

// The argument of an entry for gated products.
__device__ inline const Sm100GatedParams& gated_params(const Sm100Params& p) {
  return reinterpret_cast<const Sm100GatedParams&>(p);
}
// The groups in the argument of an entry for grouped products.
template <typename Tile>
__device__ const GroupParams& groups_of(const Sm100Params& p) {
  if constexpr (Tile::kGated) return reinterpret_cast<const Sm100GroupedGatedParams&>(p).groups;
  return reinterpret_cast<const Sm100GroupedParams&>(p).groups;
}

// The list of tiles of a grouped product, in shared memory.
template <typename Tile>
__device__ GroupList<Tile::kTokens> group_list(const Sm100Params& p, const Addresses<Tile>& at) {
  return {groups_of<Tile>(p), p.tiles_n, at.list()};
}
template <typename Tile>
__device__ TileCoordinate tile_of_index(const Sm100Params& p, const Addresses<Tile>& at,
                                        uint32_t index) {
  if constexpr (Tile::kGrouped) return group_list<Tile>(p, at).tile_at(index);
  return tile_of<Tile>(p, index);
}

template <typename Tile>
struct Cta {
  const Sm100Params& p;
  Addresses<Tile> at;
  KPartition<Tile> k;
  Walk<Tile> walk;
  uint32_t rank;  // rank in the cluster: its K partition, or its half of a pair

  static constexpr bool kIsPair = Tile::kCtas == 2;
  static constexpr uint32_t kLog2RowBytes = 7;  // of a k-block's codes
  static_assert(Tile::kK / 2 == 1 << kLog2RowBytes);

  // Moves to the next tile; false after the last one.
  __device__ bool go_on() {
    if (!walk.go_on()) return false;
    walk.tile = tile_of_index<Tile>(p, at, walk.index());
    return true;
  }
  // Whether weights are packed (docs/packing.md): codes and scales of a k-block are one run of
  // bytes, which is copied as it is to a stage.
  __device__ bool are_packed() const { return p.weight_unit_bytes != kScaleTileBytes; }
  __device__ const TileCoordinate& tile() const { return walk.tile; }
  __device__ uint32_t first_token() const {
    return Tile::kGrouped ? tile().token_tile : tile().token_tile * Tile::kTokens;
  }
  // End of the rows of D that the tile may store.
  __device__ uint32_t row_end() const { return Tile::kGrouped ? tile().row_end : p.m; }
  __device__ bool has_tile() const { return !Tile::kGrouped || walk.iterations > 0; }
  // The host's alpha, or that of the tile's group.
  __device__ float alpha() const { return of_group<&GroupParams::alpha>(p.alpha); }
  // The same for the second sums of a gated product.
  __device__ float alpha2() const {
    return of_group<&GroupParams::alpha2>(gated_params(p).gate.alpha2);
  }
  // The element at which the product's biases begin, or those of the tile's group.
  __device__ int64_t bias_first() const {
    if constexpr (!Tile::kGrouped) return 0;
    return bias_of_group(groups_of<Tile>(p), tile().batch);
  }
  // What the tile's group has of a D with scales: in 128x4 tiles they begin as those of A do.
  __device__ ScalesOfGroup d_scales() const {
    if constexpr (!Tile::kGrouped) return {};
    const bool tiles = p.epilogue.d_scales_are_tiles != 0;
    return {tiles ? scale_row() - first_token() : 0,
            d_tensor_scale_of_group(groups_of<Tile>(p), tile().batch)};
  }
  // Batch of A, C and D. All groups share one.
  __device__ uint32_t batch() const { return Tile::kGrouped ? 0 : tile().batch; }
  // The row of scales that belongs to the first token.
  __device__ uint32_t scale_row() const {
    return Tile::kGrouped ? tile().scale_row : first_token();
  }
  // Tokens that this CTA loads: all that exist, rounded up, or half of them in a pair.
  __device__ uint32_t loaded_tokens() const {
    return Tile::box_tokens(Tile::kGrouped ? row_end() - first_token() : p.m);
  }
  // Tokens that the MMAs multiply. Tensor memory columns beyond them keep their old contents, which
  // are never stored.
  __device__ uint32_t multiplied_tokens() const { return loaded_tokens() * Tile::kCtas; }
  // Blocks of 128 rows that have these tokens' scales.
  __device__ uint32_t token_scale_blocks() const {
    if constexpr (Tile::kTokenScaleBlocks == 1 || !Tile::kGrouped) return Tile::kTokenScaleBlocks;
    return (multiplied_tokens() + kScaleTileRows - 1) / kScaleTileRows;
  }
  __device__ uint32_t token_bytes() const {
    if constexpr (!Tile::kGrouped) return loaded_tokens() * (Tile::kK / 2);
    return token_boxes() << p.log2_box_rows + kLog2RowBytes;
  }
  // Calls `load` for each box of the CTA's tokens, with its address in shared memory and first row.
  // A tile of a grouped product has as many boxes as its rows need.
  template <typename Load>
  __device__ void each_box_of_tokens(uint32_t stage, const Load& load) const {
    const uint32_t to = at.tokens(stage);
    const uint32_t row = first_token() + (kIsPair ? rank * loaded_tokens() : 0);
    if constexpr (Tile::kGrouped) {
#pragma unroll 1
      for (uint32_t i = 0; i < token_boxes(); ++i) {
        load(to + (i << p.log2_box_rows + kLog2RowBytes), row + (i << p.log2_box_rows));
      }
    } else {
      load(to, row);
    }
  }
  // First of the CTA's 128 weights.
  __device__ uint32_t first_weight() const {
    return tile().weight_tile * Tile::kWeights + (kIsPair ? rank * Tile::kCtaWeights : 0);
  }

  __device__ bool shares_tile() const { return Tile::kMaxSplit > 1 && p.split > 1; }
  __device__ bool in_cluster() const { return kIsPair || shares_tile(); }
  // Whether this CTA issues scale copies and MMAs for the tile. In a pair the even CTA does, as in
  // all kernels known to run.
  __device__ bool leads() const { return !kIsPair || rank == 0; }

  __device__ uint32_t accumulator_full() const { return at.accumulator_full(walk.accumulator()); }
  __device__ uint32_t accumulator_empty() const { return at.accumulator_empty(walk.accumulator()); }

 private:
  __device__ uint32_t token_boxes() const {
    return (loaded_tokens() + (1u << p.log2_box_rows) - 1) >> p.log2_box_rows;
  }
  template <const float* GroupParams::*kAlphas>
  __device__ float of_group(float of_all) const {
    if constexpr (!Tile::kGrouped) return of_all;
    return alpha_of_group(groups_of<Tile>(p).*kAlphas, tile().batch, of_all);
  }
};

// The first tile of a CTA of a grouped product, whose list is there.
template <typename Tile>
__device__ Cta<Tile> make_grouped_cta(const Sm100Params& p, uint32_t smem) {
  const KPartition<Tile> k = all_of_k<Tile>(p);
  Cta<Tile> cta{p, {smem}, k, {{}, k.k_blocks}, blockIdx.x % Tile::kCtas};
  const GroupList<Tile::kTokens> list = group_list<Tile>(p, cta.at);
  cta.walk.iterations = iterations_of<Tile>(list.all_tiles());
  if (cta.has_tile()) cta.walk.tile = list.tile_at(cta.walk.index());
  return cta;
}

// Which part of the grid this CTA computes: a tile, a K partition of a tile, or one half of a pair.
// A cluster lies along x, so the CTA's index gives its rank.
template <typename Tile>
__device__ Cta<Tile> make_cta(const Sm100Params& p, uint32_t smem) {
  const auto cta = [&](uint32_t tile, uint32_t rank, const KPartition<Tile>& k) {
    return Cta<Tile>{p, {smem}, k, {tile_of<Tile>(p, tile), k.k_blocks}, rank};
  };
  if constexpr (Tile::kGrouped) {
    return make_grouped_cta<Tile>(p, smem);
  } else if constexpr (Tile::kCtas == 2) {
    return cta(blockIdx.x / 2, blockIdx.x % 2, all_of_k<Tile>(p));
  } else if constexpr (Tile::kMaxSplit > 1) {
    const uint32_t rank = blockIdx.x & (p.split - 1);
    return cta(blockIdx.x >> log2_of_split(p.split), rank, k_partition<Tile>(p, rank));
  } else {
    return cta(blockIdx.x, 0, all_of_k<Tile>(p));
  }
}

}  // namespace nvfp4
