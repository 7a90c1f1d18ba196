// SPDX-License-Identifier: MIT
// Stores to D from the two complete sums of an element of a gated product. In a row of sums, those
// with the rows of b come before those with the rows of b2.
#pragma once

#include <cstdint>

#include "kernel/common/gated.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/gate.cuh"
#include "kernel/sm90/sums/rows.cuh"

namespace nvfp4 {

// A, D and the maxima of groups have no batches.
template <typename Tile>
__device__ void store_gated_of(const Sm90Params& p, SumRows rows) {
  const GateParams& gate = gated_params(p).gate;
  GateAlphas alphas{p.alpha, gate.alpha2};
  if constexpr (Tile::kGrouped) {
    alphas.of_b = alpha_of<Tile>(p, rows.batch);
    alphas.of_b2 = alpha2_of<Tile>(p, rows.batch);
    alphas.bias_first = bias_first_of<Tile>(p, rows.batch);
    alphas.d_scales.tensor_scale = d_tensor_scale_of_group(groups_of(p), rows.batch);
    rows.batch = 0;
  }
  store_gated(p, gate, alphas, rows, kHalvesApart<Tile>, decoding_scale<Tile>(p));
}

// A called function, for tiles whose loop over K has no register to spare: inlined it spills one.
template <typename Tile>
__device__ __noinline__ void call_store_gated(const Sm90Params& p, SumRows rows) {
  store_gated_of<Tile>(p, rows);
}

template <typename Tile>
__device__ void store_gated_90(const Sm90Params& p, const SumRows& rows) {
  if (!has_general_epilogue<Tile>(p)) return;
  if (rows.m < rows.m_end) {
    if constexpr (Tile::kPushesSums) {
      call_store_gated<Tile>(p, rows);
    } else {
      store_gated_of<Tile>(p, rows);
    }
  }
  __syncwarp();  // some lanes have stored
}

// Works like store_general_rows, with as many tokens at once as fit beside the rings in use. A warp
// stores two rows in sixteen.
template <typename Tile, uint32_t kSums>
__device__ void store_gated_rows(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                                 uint32_t warp, uint32_t lane, const float (&sums)[kSums]) {
  constexpr uint32_t kRows = Tile::kRowsPerPass / 2, kRowBytes = Tile::kWeights * 4;
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  static_assert(Tile::kGroups == 1 && kSums * 2 == Tile::kTokens && Tile::kTokens % kRows == 0);
  static_assert(Tile::kWeights == 128 && Tile::kConsumerWarps == 8 && kRows % 16 == 0);
  const uint32_t row = warp * 2 + lane / 16, column = lane % 16;
  const uint32_t m_first = tile.token_tile * Tile::kTokenStep, m_end = row_end<Tile>(p, tile);
  const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + column * 4;
  const uint32_t mine = at + row * kRowBytes + (column ^ row % 8) * 16;
#pragma unroll 1
  for (uint32_t first = 0; first < Tile::kTokens; first += kRows) {
    const uint32_t m = m_first + first;
    if (m >= m_end) break;
      // Registers cannot be indexed, so branches select the sums; the code that follows exists
      // once.
#pragma unroll
    for (uint32_t i = 0; i < Tile::kTokens; i += kRows) {
      if (i == first) put_float_rows<Tile, kRows>(sums, i, at, warp, lane);
    }
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows are ready
    const SumRows rows{mine, 16 * kRowBytes, tile.batch, n, m + row, 16, min(m + kRows, m_end)};
    store_gated_of<Tile>(p, rows);
    __syncwarp();  // some lanes have stored, and bar.sync needs all together
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // they have been read
  }
}

}  // namespace nvfp4
