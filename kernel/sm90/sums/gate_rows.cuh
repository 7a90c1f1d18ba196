// SPDX-License-Identifier: MIT
// D of a gated product from partial sums in shared memory, for the entries that have no other
// epilogue. The code that adds and the code that follows exist once in a kernel, whatever the
// number of K partitions is: a kernel for few tokens fetches its code longer than it computes.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/add.cuh"
#include "kernel/sm90/sums/gate.cuh"

namespace nvfp4 {

// Where the partial sums of a tile's tokens lie, and which of these tokens the CTA stores. All
// partial sums of a token are in this CTA, or those of each CTA at the same place of its own shared
// memory.
struct GatedSums {
  uint32_t at;          // the first partial sum of the token `first`
  uint32_t apart;       // bytes from one partial sum of a token to the next
  uint32_t ctas;        // that share the tile along K
  uint32_t first, end;  // tokens, counted from the tile's first one
};

// Both sums of four columns.
struct BothSums {
  float4 of[2];
  __device__ void add_to(const BothSums& other, bool is_first) {
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      of[half] = is_first ? other.of[half] : add(of[half], other.of[half]);
    }
  }
};

template <typename Tile>
__device__ BothSums load_both(uint32_t at) {
  return {{ptx::ld_shared_v4_f32(at), ptx::ld_shared_v4_f32(at + kHalvesApart<Tile>)}};
}

// Adds partial sums of this CTA's shared memory, in the order of store_pushed_sums, or for tiny
// tiles of store_tiny_sums.
template <typename Tile>
__device__ BothSums add_own(uint32_t at, uint32_t apart, uint32_t ctas) {
  BothSums sums;
#pragma unroll 1
  for (uint32_t i = 0; i < ctas; ++i) {
    BothSums of_cta;
#pragma unroll
    for (uint32_t part = 0; part < Tile::kPartials; ++part, at += apart) {
      const BothSums one = load_both<Tile>(at);
      if constexpr (Tile::kBlockSums) {
        sums.add_to(one, i + part == 0);
      } else {
        of_cta.add_to(one, part == 0);
      }
    }
    if (!Tile::kBlockSums) sums.add_to(of_cta, i == 0);
  }
  return sums;
}

// Adds the sums of all CTAs of the cluster, first to last. Those of four are requested before the
// first is used: each takes as long as several of the CTA's own.
template <typename Tile>
__device__ BothSums add_remote(uint32_t at, uint32_t ctas) {
  constexpr uint32_t kAtOnce = 4;
  BothSums sums;
#pragma unroll 1
  for (uint32_t from = 0; from < ctas; from += kAtOnce) {
    BothSums one[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t of_cta = ptx::mapa(at, min(from + i, ctas - 1));
      one[i].of[0] = ptx::ld_shared_cluster_v4_f32(of_cta);
      one[i].of[1] = ptx::ld_shared_cluster_v4_f32(of_cta + kHalvesApart<Tile>);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (from + i < ctas) sums.add_to(one[i], from + i == 0);
    }
  }
  return sums;
}

// Adds the partial sums and stores D, four columns of a row per lane and a warp as many rows as it
// has lanes for.
template <typename Tile>
__device__ void store_gated_sums(const Cta90<Tile>& cta, const GatedSums& from, uint32_t warp,
                                 uint32_t lane) {
  constexpr uint32_t kLanesPerRow = Tile::kColumnsOfD / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kStep = Tile::kConsumerWarps * kRows;
  const Sm90Params& p = cta.p;
  const uint32_t own = warp * kRows + lane / kLanesPerRow, column = lane % kLanesPerRow * 4;
  const uint32_t m_first = cta.tile.token_tile * Tile::kTokenStep;
  const uint32_t end = min(from.end, row_end<Tile>(p, cta.tile) - m_first);
  if (from.first + warp * kRows >= end) return;
  const uint32_t n = cta.tile.weight_tile * Tile::kColumnsOfD + column;
  const GateTerms<Tile, 4> terms(p, cta.tile.batch, n);        // waits for earlier grids
  const uint32_t batch = Tile::kGrouped ? 0 : cta.tile.batch;  // A and D of groups have no batches
  const Epilogue90<Tile> out(p, cta.tile, n);
#pragma unroll 1
  for (uint32_t row = own; from.first + row < end; row += kStep) {
    const uint32_t at = from.at + row * Tile::kSumRowBytes + column * 4;
    BothSums sums;
    if constexpr (Tile::kPushesSums) {
      sums = add_own<Tile>(at, from.apart, from.ctas);
    } else {
      sums = from.ctas == 1 ? load_both<Tile>(at) : add_remote<Tile>(at, from.ctas);
    }
    const uint32_t m = m_first + from.first + row;
    float x[4] = {sums.of[0].x, sums.of[0].y, sums.of[0].z, sums.of[0].w};
    float y[4] = {sums.of[1].x, sums.of[1].y, sums.of[1].z, sums.of[1].w};
    terms.finish(
        batch, [&](uint32_t) { return m; }, x, y);
    store_gated_four(out, m, make_float4(x[0], x[1], x[2], x[3]));
  }
}

// Few tokens, whose sums are pushed: works like exchange_few_sums. A shared tile's sums have been
// pushed.
template <typename Tile>
__device__ void store_few_gated_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t at = cta.smem + Tile::kSumsAt;
  GatedSums from{at, Tile::kPartialBytes, 1, 0, Tile::kTokens};
  if (cta.shared()) {
    ptx::mbarrier_wait_cluster(cta.sums_full(), 0);
    const uint32_t slice = slice_of(Tile::kTokens, cta.p.split);
    const uint32_t first = cta.rank * slice;
    from = {at, slice * Tile::kSumRowBytes, cta.p.split, first, first + cta.own_tokens()};
  } else {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  }
  store_gated_sums(cta, from, warp, lane);
}

// Complete sums of a CTA, which put_sums has written: works like store_sums.
template <typename Tile>
__device__ void store_gated_slice(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t at = cta.smem + Tile::kSumsAt;
  if (Tile::kGrouped || !cta.shared()) {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
    return store_gated_sums(cta, {at, 0, 1, 0, Tile::kTokens}, warp, lane);
  }
  const uint32_t slice = slice_of(Tile::kTokens, cta.p.split);
  const uint32_t first = min(cta.rank * slice, Tile::kTokens);
  ptx::cluster_sync();  // every CTA's sums are ready
  store_gated_sums(
      cta,
      {at + first * Tile::kSumRowBytes, 0, cta.p.split, first, min(first + slice, Tile::kTokens)},
      warp, lane);
  __syncwarp();                 // some lanes have stored
  ptx::cluster_sync_relaxed();  // no CTA ends while others read its sums
}

// A tiny tile, whose partial sums begin at the `partial`-th one.
template <typename Tile>
__device__ void store_tiny_gated_sums(const Cta90<Tile>& cta, uint32_t partial, uint32_t warp,
                                      uint32_t lane) {
  GatedSums from{cta.smem + Tile::kSumsAt + partial * Tile::kPartialBytes, Tile::kPartialBytes, 1,
                 0, Tile::kTokens};
  if (cta.shared()) {
    if (cta.rank != 0) return;
    ptx::mbarrier_wait_cluster(cta.sums_full(), 0);
    from.at = cta.smem + Tile::kSumsAt;
    from.ctas = cta.p.split;
  }
  store_gated_sums(cta, from, warp, lane);
}

}  // namespace nvfp4
