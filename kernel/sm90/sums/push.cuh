// SPDX-License-Identifier: MIT
// Pushes the sums of few tokens on Hopper: straight from registers to the CTA of the cluster that
// stores their token, where sums_full counts that CTA's lanes and the others' bytes. No thread
// waits for drained rings or for a cluster barrier.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/add.cuh"
#include "kernel/sm90/sums/gate.cuh"

namespace nvfp4 {

// Pushes the fragment of one warp: 16 weights, all tokens of the tile.
template <typename Tile, uint32_t kSplit>
__device__ void push_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                          const float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kSlice = slice_of(Tile::kTokens, kSplit);
  static_assert(kSplit > 1 && kSlice * kSplit <= Tile::kPushedRows);
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t partial = cta.rank * Tile::kPartials + warp / Tile::kConsumersPerStage;
  const uint32_t own = cta.smem + Tile::kSumsAt + partial * kSlice * Tile::kSumRowBytes +
                       (warp % Tile::kConsumersPerStage * Tile::kWarpColumns + g) * 4;
#pragma unroll
  for (uint32_t block = 0; block < Tile::kTokens / 8; ++block) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t token = block * 8 + 2 * c + i % 2;
      const uint32_t rank = token / kSlice;
      const uint32_t at =
          own + (token - rank * kSlice) * Tile::kSumRowBytes + i / 2 * Tile::kWeightsApart * 4;
      if (rank == cta.rank) {
        ptx::st_shared_f32(at, sums[block * 4 + i]);
      } else {
        ptx::st_async_f32(ptx::mapa(at, rank), sums[block * 4 + i],
                          ptx::mapa(cta.sums_full(), rank));
      }
    }
  }
  ptx::mbarrier_arrive(cta.sums_full());
}

// Stores this CTA's tokens. A lane stores 4 weights of a row, and a warp as many rows as it has
// lanes for. The partial sums of each CTA are added first, then those sums, in the order of K.
// Tiles whose groups divide the tokens add in the same order, so the width of a tile does not
// change the bits.
template <typename Tile, uint32_t kSplit>
__device__ SumRows store_pushed_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                     const FourTerms<Tile>& terms) {
  constexpr uint32_t kSlice = slice_of(Tile::kTokens, kSplit);
  constexpr uint32_t kLanesPerRow = Tile::kColumnsOfD / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kPartials = kSplit * Tile::kPartials;
  const Sm90Params& p = cta.p;
  const uint32_t row = warp * kRows + lane / kLanesPerRow, column = lane % kLanesPerRow * 4;
  const uint32_t m = cta.tile.token_tile * Tile::kTokenStep + cta.rank * kSlice + row;
  static_assert(kSlice <= Tile::kConsumerWarps * kRows);
  ptx::mbarrier_wait_cluster(cta.sums_full(), 0);
  if (row >= cta.own_tokens() || m >= row_end<Tile>(p, cta.tile)) return {};
  const uint32_t at = cta.smem + Tile::kSumsAt + row * Tile::kSumRowBytes + column * 4;
  float4 sums[Tile::kHalves];
#pragma unroll
  for (uint32_t half = 0; half < Tile::kHalves; ++half) {
    float4 partial[kSplit][Tile::kPartials];
#pragma unroll
    for (uint32_t i = 0; i < kPartials; ++i) {
      partial[i / Tile::kPartials][i % Tile::kPartials] =
          ptx::ld_shared_v4_f32(at + half * kHalvesApart<Tile> + i * kSlice * Tile::kSumRowBytes);
    }
    sums[half] = add_partials_of_ctas(partial);
  }
  const uint32_t n = cta.tile.weight_tile * Tile::kColumnsOfD + column;
  if constexpr (Tile::kGated) ptx::st_shared_v4_f32(at + kHalvesApart<Tile>, sums[1]);
  return store_one_sum(cta, n, m, at, sums[0], terms);
}

}  // namespace nvfp4
