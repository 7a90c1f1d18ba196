// SPDX-License-Identifier: MIT
// The part of a product that a CTA computes.
#pragma once

#include <cstdint>

#include "kernel/common/groups.cuh"
#include "kernel/common/scale_tile.h"
#include "kernel/ptx/cluster.cuh"
#include "kernel/sm80/params.h"
#include "kernel/sm80/tile.h"

namespace nvfp4 {

// Whether the K partitions of a tile form a cluster. Otherwise their sums meet in the workspace.
#if __CUDA_ARCH__ >= 900
constexpr bool kSm80Clusters = true;
#else
constexpr bool kSm80Clusters = false;
#endif
// 9.0 has kernels of its own for UE8M0 scales.
constexpr bool kSm80TakesUe8m0 = !kSm80Clusters;

// log2 of the elements that share a scale, in code for such operands.
template <typename Operand>
__device__ uint32_t log2_of_scale(const Sm80Params& p) {
  return Operand::kUe8m0 ? p.log2_of_ue8m0 : 4;
}

__device__ inline const Sm80GroupedParams& grouped_params(const Sm80Params& p) {
  return reinterpret_cast<const Sm80GroupedParams&>(p);
}

struct Sm80Place {
  uint32_t batch, m, n;  // batch or group, first token and first column of D of a tile
  uint32_t m_end;        // end of the tokens of the batch or group
  uint32_t scale_row;    // of D's scales in 128x4 tiles, of the first token of a group's tile
};

// Tokens change fastest, so that tiles that share weights run at the same time.
template <typename Tile>
__device__ Sm80Place sm80_place(const Sm80Params& p, uint32_t tile) {
  Sm80Place place{0, 0, tile, p.m, 0};
  if (p.tiles_m > 1) {
    place.n = tile / p.tiles_m;
    place.m = (tile - place.n * p.tiles_m) * Tile::kTokens;
  }
  if (p.batches > 1) {
    place.batch = place.n / p.tiles_n;
    place.n -= place.batch * p.tiles_n;
  }
  place.n *= kSm80Weights;
  return place;
}

// The row of D's scales in 128x4 tiles that belongs to a row of a group. Called by a whole warp.
__device__ inline uint32_t scale_row_of(const GroupParams& p, uint32_t group, uint32_t row) {
  uint32_t end = 0, tiles = 0;
#pragma unroll 1
  for (uint32_t first = 0;; first += 32) {
    const GroupRows rows = rows_of_groups(p, first + lane_number(), end);
    const uint32_t before = first + lane_number() < group ? rows.tiles(kScaleTileRows) : 0;
    tiles += __shfl_sync(0xFFFFFFFF, sum_up_to_lane(before), 31);
    if (group - first < 32) {
      const uint32_t begin = __shfl_sync(0xFFFFFFFF, rows.begin, group - first);
      const uint32_t place = p.scale_rows == nullptr ? tiles * kScaleTileRows : p.scale_rows[group];
      return place + row - begin;
    }
    end = __shfl_sync(0xFFFFFFFF, rows.end, 31);
  }
}

// The tiles of a grouped product that a CTA computes, one after the other. Every warp searches the
// groups by itself, and anew for each tile: the loop over K has no registers for a walk.
template <typename Tile>
struct Sm80Walk {
  uint32_t index = blockIdx.x;

  __device__ bool next(const Sm80Params& p, Sm80Place* place) {
    const Sm80GroupedParams& grouped = grouped_params(p);
    TileCoordinate tile;
    if (!grouped_tile_at<Tile::kTokens>(grouped.groups, p.tiles_n, index, &tile)) return false;
    index += gridDim.x;
    *place = {tile.batch, tile.token_tile, tile.weight_tile * grouped.columns, tile.row_end, 0};
    if (p.epilogue.d_scales_are_tiles != 0) {
      place->scale_row = scale_row_of(grouped.groups, tile.batch, tile.token_tile);
    }
    return true;
  }
};

template <typename Tile>
struct Sm80Cta {
  const Sm80Params& p;
  Sm80Place at;
  uint32_t tile, rank;           // index of the tile and of its K partition
  uint32_t first_block, blocks;  // k-blocks of the partition
  uint32_t weights, tokens;      // number of those of the tile that exist; if gated, of each b
  uint32_t smem, stage_bytes;

  __device__ Sm80Cta(const Sm80Params& params, uint32_t shared) : p(params), smem(shared) {
    tile = p.split == 1 ? blockIdx.x : blockIdx.x / p.split;
    rank = blockIdx.x - tile * p.split;
    at = sm80_place<Tile>(p, tile);
    const uint32_t all = (p.k + kSm80BlockK - 1) / kSm80BlockK;
    const uint32_t each = p.split == 1 ? all : all / p.split;
    const uint32_t more = all - each * p.split;  // the first partitions have one more
    first_block = rank * each + min(rank, more);
    blocks = each + (rank < more);
    count_rows();
  }
  // A tile of a grouped product, which has all of K.
  __device__ Sm80Cta(const Sm80Params& params, uint32_t shared, const Sm80Place& place)
      : p(params), at(place), tile(0), rank(0), first_block(0), smem(shared) {
    blocks = (p.k + kSm80BlockK - 1) / kSm80BlockK;
    count_rows();
  }

  __device__ uint32_t columns() const {
    return Tile::kGrouped ? grouped_params(p).columns : kSm80Weights;
  }

  // Place of the sums of each K partition of a cluster, in its first CTA.
  __device__ uint32_t partitions(uint32_t of_rank) const {
    const uint32_t bytes = sm80_token_rows(p.m, Tile::kTokens) * kSm80SumRowBytes;
    if constexpr (!Tile::kPartitionsInRings) return ring(Tile::kWarps) + of_rank * bytes;
    return ring(of_rank % Tile::kWarps) + Tile::kWarpSumBytes + of_rank / Tile::kWarps * bytes;
  }
  __device__ uint32_t zeros() const { return smem; }
  __device__ uint32_t sums_full() const { return smem + kSm80ZeroBytes; }
  __device__ uint32_t ring(uint32_t warp) const {
    return smem + kSm80RingsAt + warp * Tile::kStages * stage_bytes;
  }

 private:
  __device__ void count_rows() {
    weights = min(p.n - at.n, columns());
    tokens = min(at.m_end - at.m, Tile::kTokens);
    stage_bytes = sm80_stage_bytes(sm80_token_rows(p.m, Tile::kTokens));
  }
};

}  // namespace nvfp4
