// SPDX-License-Identifier: MIT
// The epilogue warps of gemm.cu: each waits for a tile's sums and stores its part of them by the
// epilogue that D needs.
#pragma once

#include <cstdint>

#include "kernel/common/prefetch_c.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/general.cuh"
#include "kernel/sm100/split.cuh"

namespace nvfp4 {

template <typename Tile>
__device__ void wait_for_sums(const Cta<Tile>& cta) {
  ptx::mbarrier_wait(cta.accumulator_full(), cta.walk.accumulator_parity());
  ptx::tcgen05_fence_after_thread_sync();
}

// Signals that this warp has read the accumulator, if a later tile needs it. A relaxed arrival is
// enough, because the tcgen05 fences order accesses to tensor memory (PTX ISA 9.7.16.6.4). One with
// release semantics would make the warp wait for its stores of D.
template <typename Tile>
__device__ void release_accumulator(const Cta<Tile>& cta, uint32_t lane) {
  if constexpr (Tile::kSeveralTiles) {
    if (!cta.walk.accumulator_is_used_again()) return;
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (ptx::elect_sync()) {
      ptx::mbarrier_arrive_cluster_relaxed(ptx::mapa(cta.accumulator_empty(), 0));
    }
    __syncwarp();
  }
}

// One of the eight epilogue warps stores its columns of every other sub-tile, or half of one; the
// other warp of its lane band stores the rest. An entry is a kernel that the host
// can launch. It contains either the fast or the general epilogue, never both: the code of the
// general one is large, and each launch fetches it anew. D has scales if kScales is set.
template <typename Tile, bool kGeneral, bool kScales>
__device__ void store_tile(const Cta<Tile>& cta, uint32_t tmem, uint32_t warp, uint32_t lane) {
  const Sm100Params& p = cta.p;
  const uint32_t epilogue_warp = warp - Tile::kFirstEpilogueWarp;
  const uint32_t band = warp % 4, half = epilogue_warp / 4, batch = cta.batch();
  const uint32_t m = cta.first_token(), n = cta.first_weight(),
                 n_first = n + band * kSubTileWeights;
  const uint32_t sums = tmem + tmem_address(band * 32, 0);
  // Prefetch C while the sums are still being computed. The columns of a pair's second CTA may all
  // lie beyond the last column of D: that CTA needs no C.
  if (kGeneral && (Tile::kCtas == 1 || n < p.n)) {
    prefetch_c(p,
               CRegion{batch, m, min(m + Tile::kTokens, cta.row_end()), n,
                       min(n + Tile::kCtaWeights, p.n)},
               epilogue_warp * 32 + lane, Tile::kEpilogueWarps * 32);
  }
  if (n_first >= p.n) {
    if (!Tile::kSeveralTiles) return;
    // This warp has no columns to store. It still waits until the sums are ready, and only then
    // releases the accumulator.
    wait_for_sums(cta);  // a CTA may not end before the last commit arrives at it
    release_accumulator(cta, lane);
    return;
  }
  if constexpr (Tile::kMaxSplit > 1 && !kGeneral) {
    if (cta.shares_tile()) {
      store_partition(cta, sums, n_first, band, half, lane);
      return;
    }
  }
  // The last commit covers every MMA. So if the CTA has a single tile, nothing uses the ring after
  // that commit, and the warps may use it as a staging buffer.
  const Boxes<Tile, kGeneral> boxes{p, {cta.at.smem, epilogue_warp}, batch, n_first, lane};
  if (boxes.used() && lane == 0) ptx::prefetch_tensormap(&p.d_map);
  __syncwarp();
  if constexpr (kGeneral) {
    GateAlphas alphas{cta.alpha(), cta.alpha(), cta.bias_first(), cta.d_scales()};
    const LaneColumn column(p, alphas.of_b, n_first + lane, alphas.bias_first,
                            p.epilogue.bias_per_row == 0);
    LaneColumn second;
    if constexpr (Tile::kGated) {
      alphas.of_b2 = cta.alpha2();
      second = second_column(p, alphas, n_first + lane);
    }
    // ptxas takes a flag that is set in one of two ways for one that lanes may differ in.
    const bool shares = Tile::kMaxSplit > 1 && cta.shares_tile();
    Sums<Tile> from{sums,   0, lane, m, m + half * kHalfRows, min(cta.row_end(), m + Tile::kTokens),
                    shares, 0};
    if (!shares) wait_for_sums(cta);
    if constexpr (Tile::kMaxSplit > 1) {
      if (shares) {
        const SharedSums slice = add_partitions(cta, sums, band, half, lane);
        from.at = slice.at, from.staging = slice.staging;
        from.first = from.m = m + slice.first, from.end = from.first + slice.rows;
      }
    }
    drain_general<Tile, kScales>(alphas, column, second, from, boxes);
    release_accumulator(cta, lane);
  } else {
    const LaneColumn column(p, cta.alpha(), n_first + lane, cta.bias_first());
    const Rows to(p, batch, n_first, cta.row_end());
    wait_for_sums(cta);
    drain<Tile>(column, to, m, sums, boxes, half, cta.walk.accumulator(),
                [&] { release_accumulator(cta, lane); });
  }
  if (boxes.used()) boxes.wait();
}

}  // namespace nvfp4
