// SPDX-License-Identifier: MIT
// Sums that are exchanged through shared memory on Hopper, in fp32, [token][weight]: those of the
// CTAs of a cluster, which each CTA adds in the order of K for its slice of the tokens, and those
// of groups with few tokens.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/add.cuh"
#include "kernel/sm90/sums/gate.cuh"

namespace nvfp4 {

// Writes a fragment of one warp: 16 weights, 8 tokens for each four sums.
template <typename Tile, uint32_t kSums>
__device__ void put_sums(const float (&sums)[kSums], uint32_t at, uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t weight = warp % Tile::kConsumersPerStage * Tile::kWarpColumns + g;
  const uint32_t own = at + 2 * c * Tile::kSumRowBytes + weight * 4;
#pragma unroll
  for (uint32_t block = 0; block < kSums / 4; ++block) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t token = block * 8 + i % 2;
      const uint32_t further = i / 2 * Tile::kWeightsApart;
      ptx::st_shared_f32(own + token * Tile::kSumRowBytes + further * 4, sums[block * 4 + i]);
    }
  }
}

// Adds four neighbouring weights of one token over every rank, first to last.
template <typename Tile, uint32_t kSplit>
__device__ float4 sum_of_partials(uint32_t at) {
  static_assert(kSplit == 1 || Tile::kPartials == 1, "of groups, or of CTAs");
  float4 partial[kSplit * Tile::kPartials];
#pragma unroll
  for (uint32_t rank = 0; rank < kSplit; ++rank) {
#pragma unroll
    for (uint32_t i = 0; i < Tile::kPartials; ++i) {
      const uint32_t from = at + i * Tile::kPartialBytes;
      partial[rank * Tile::kPartials + i] =
          kSplit == 1 ? ptx::ld_shared_v4_f32(from)
                      : ptx::ld_shared_cluster_v4_f32(ptx::mapa(from, rank));
    }
  }
  return add_partials(partial);
}

// Stores this CTA's output slice. A lane stores 4 weights of a row, and a warp as many rows as it
// has lanes for. A batch of rows is read before the first of them is used. Otherwise each row would
// wait for its own sums, which takes longest if they come from another CTA. For another epilogue a
// complete sum is written where this CTA's partial sum was, which no other thread reads.
template <typename Tile, uint32_t kSplit>
__device__ SumRows store_slice(const Sm90Params& p, const TileCoordinate& tile, uint32_t rank,
                               uint32_t at, uint32_t warp, uint32_t lane,
                               const FourTerms<Tile>& terms) {
  constexpr uint32_t kLanesPerRow = Tile::kColumnsOfD / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kStride = Tile::kConsumerWarps * kRows;
  constexpr uint32_t kSlice = slice_of(Tile::kTokens, kSplit);
  constexpr uint32_t kRounds = (kSlice + kStride - 1) / kStride;
  constexpr uint32_t kAll = kSplit * Tile::kPartials * Tile::kHalves;
  constexpr uint32_t kFits = kAll >= 8 ? 1 : 16 / kAll;
  constexpr uint32_t kBatch = kRounds < kFits ? kRounds : kFits;
  const uint32_t m_first = tile.token_tile * Tile::kTokenStep;
  const uint32_t column = lane % kLanesPerRow;
  const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + column * 4;
  const Epilogue90<Tile> out(p, tile, n);
  const uint32_t end =
      min(min((rank + 1) * kSlice, Tile::kTokens), row_end<Tile>(p, tile) - m_first);
  const uint32_t own = rank * kSlice + warp * kRows + lane / kLanesPerRow;
  const auto place = [&](uint32_t token) { return at + token * Tile::kSumRowBytes + column * 16; };
  for (uint32_t first = own; first < end; first += kBatch * kStride) {
    float4 sums[Tile::kHalves][kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = first + i * kStride;
#pragma unroll
      for (uint32_t half = 0; half < Tile::kHalves; ++half) {
        sums[half][i] = sum_of_partials<Tile, kSplit>(place(token < end ? token : first) +
                                                      half * kHalvesApart<Tile>);
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = first + i * kStride;
      if (token >= end) break;
      if (leaves_sums<Tile>(p)) {
#pragma unroll
        for (uint32_t half = 0; half < Tile::kHalves; ++half) {
          ptx::st_shared_v4_f32(place(token) + half * kHalvesApart<Tile>, sums[half][i]);
        }
      } else {
        out.store_sums(m_first + token, sums[0][i], terms);
      }
    }
  }
  if (!leaves_sums<Tile>(p)) return {};
  __syncwarp();  // a barrier of whole warps may follow
  return {place(own),   kStride * Tile::kSumRowBytes, tile.batch, n, m_first + own, kStride,
          m_first + end};
}

// Passes the complete sums of all tokens, which put_sums has written, to the general epilogue.
template <typename Tile>
__device__ SumRows rows_of_whole_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  constexpr uint32_t kLanesPerRow = Tile::kColumnsOfD / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kStride = Tile::kConsumerWarps * kRows;
  static_assert(Tile::kPartials == 1, "whole sums");
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  const uint32_t token = warp * kRows + lane / kLanesPerRow, column = lane % kLanesPerRow * 4;
  const uint32_t m_first = cta.tile.token_tile * Tile::kTokenStep;
  return {cta.smem + Tile::kSumsAt + token * Tile::kSumRowBytes + column * 4,
          kStride * Tile::kSumRowBytes,
          cta.tile.batch,
          cta.tile.weight_tile * Tile::kColumnsOfD + column,
          m_first + token,
          kStride,
          min(m_first + Tile::kTokens, row_end<Tile>(cta.p, cta.tile))};
}

// Stores what put_sums has written; all consumer warps take part.
template <typename Tile, uint32_t kSplit>
__device__ SumRows store_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                              const FourTerms<Tile>& terms) {
  if constexpr (kSplit == 1) {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  } else {
    ptx::cluster_sync();  // every CTA's sums are ready
  }
  const uint32_t rank = kSplit == 1 ? 0 : cta.rank;  // rank among the CTAs that share the tile
  const SumRows rows =
      store_slice<Tile, kSplit>(cta.p, cta.tile, rank, cta.smem + Tile::kSumsAt, warp, lane, terms);
  if constexpr (kSplit != 1) ptx::cluster_sync_relaxed();  // no CTA ends while others read its sums
  return rows;
}

}  // namespace nvfp4
