// SPDX-License-Identifier: MIT
// Split-K: each CTA of a cluster has the sums of its K partition for all tokens of the tile, and
// stores an output slice, a range of these tokens. It pushes the other slices' rows to their CTAs
// from its drained ring, and adds its own rows in registers, in the order of K.
//
//   accumulator_full --> "my ring is drained" --arrive--> peers_ready of the other CTAs
//   tensor memory --> own ring --bytes, once peers_ready--> the other CTA's ring, its sums[w]
//   tensor memory, sums[w] --> partial sums added --> D
//
//   peers_ready counts split - 1 arrivals. sums[w] counts 1 arrival (expect_tx) and the bytes of
//   the others' rows for epilogue warp w. A warp has 32 weights, its lane band, and one half of
//   every slice, so warps are independent. Only rows that exist are pushed, rounded up to four.
//
// Bulk copies between CTAs: PTX ISA 9.7.9.25.4.1, completion on a barrier of the destination's CTA.
// Bytes may be counted before its expect_tx, within the same phase. Public kernels for a B200 split
// K the same way (TensorRT-LLM, trtllm-gen: SplitK::Dsmem, cubins "..splitK4_.._sm100a").
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/k_tail.cuh"

namespace nvfp4 {

// On their way the sums of four rows of a lane are contiguous: 16 bytes.
constexpr uint32_t kRowsOfPiece = 4;

// One warp's side of the exchange between kParts partitions. A row is a token of the tile. Slices
// follow each other in the order of ranks, and the two halves of a slice in that of their warps.
template <typename Tile, uint32_t kPartitions>
struct Exchange {
  static constexpr uint32_t kRows =
      Tile::kTokens / (kPartitions * Tile::kHalves);  // of half a slice
  static constexpr uint32_t kReceivedAt = 4 * Tile::kTokens * kSumRowBytes;
  // Behind both the general epilogue has a staging buffer for each warp.
  static constexpr uint32_t kStagingAt = 2 * kReceivedAt;
  static_assert(kStagingAt + Tile::kEpilogueWarps * kHalfSumBytes <=
                    Tile::kStages * (Tile::kMatrixBytes + Tile::kTokenBytes),
                "own and received sums and the buffers lie in the ring");
  static_assert(kRows % 8 == 0 && kRows <= 32, "one load of tensor memory");

  const Cta<Tile>& cta;
  uint32_t tmem;  // first column of the accumulator, first lane of the warp
  uint32_t m, band, half, lane;
  uint32_t rows;  // rows that exist

  __device__ Exchange(const Cta<Tile>& its, uint32_t its_tmem, uint32_t its_band, uint32_t its_half,
                      uint32_t its_lane)
      : cta(its),
        tmem(its_tmem),
        m(its.first_token()),
        band(its_band),
        half(its_half),
        lane(its_lane),
        rows(min(its.p.m - m, Tile::kTokens)) {}

  // First row of this warp's half of a rank's slice, and how many of its rows exist.
  __device__ uint32_t first_of(uint32_t rank) const {
    return (rank * Tile::kHalves + half) * kRows;
  }
  __device__ uint32_t rows_of(uint32_t rank) const {
    const uint32_t before = first_of(rank);
    return rows > before ? min(rows - before, kRows) : 0;
  }
  __device__ uint32_t pushed_of(uint32_t rank) const {
    return (rows_of(rank) + kRowsOfPiece - 1) / kRowsOfPiece * kRowsOfPiece;
  }
  __device__ uint32_t own(uint32_t row) const {
    return cta.at.smem + (band * Tile::kTokens + row) * kSumRowBytes;
  }
  // Address of the partial sums that a rank has sent for this warp's rows.
  __device__ uint32_t received(uint32_t rank) const {
    return cta.at.smem + kReceivedAt + (band * Tile::kTokens + first_of(rank)) * kSumRowBytes;
  }
  __device__ uint32_t sums() const { return cta.at.sums(half * 4 + band); }
  __device__ bool is_peer(uint32_t rank) const { return rank < kPartitions && rank != cta.rank; }

  // Signals every peer, with one lane per peer. The warp that every tile has does this. Only
  // accesses to this CTA's ring have to be over, so a fence for it and a relaxed arrival are
  // enough. One with release semantics would wait for all of the GPU's memory.
  __device__ void tell_ring_is_drained() const {
    if (band == 0 && half == 0 && is_peer(lane)) {
      ptx::fence_release_own_shared();
      ptx::mbarrier_arrive_cluster_relaxed(ptx::mapa(cta.at.peers_ready(), lane));
    }
  }

  // Copies the rows of the other CTAs' slices into the ring.
  __device__ void put() const {
#pragma unroll 1
    for (uint32_t rank = 0; rank < kPartitions; ++rank) {
      const uint32_t row = first_of(rank);
      if (rank == cta.rank || row >= rows) continue;
      uint32_t sums[kRows];
      ptx::tcgen05_ld_32x32b(sums, tmem + row);
#pragma unroll
      for (uint32_t i = 0; i < kRows; i += kRowsOfPiece) {
        ptx::st_shared_v4_b32(own(row + i) + lane * 16,
                              make_uint4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
      }
    }
  }

  __device__ void push() const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    const uint32_t own_rows = pushed_of(cta.rank);
    if (lane == cta.rank && own_rows > 0) {
      ptx::mbarrier_arrive_expect_tx(sums(), (kPartitions - 1) * own_rows * kSumRowBytes);
    }
    const uint32_t their_rows = is_peer(lane) ? pushed_of(lane) : 0;
    if (their_rows > 0) {
      ptx::mbarrier_wait_cluster(cta.at.peers_ready(), 0);
      ptx::cp_async_bulk_to_cluster(ptx::mapa(received(cta.rank), lane), own(first_of(lane)),
                                    their_rows * kSumRowBytes, ptx::mapa(sums(), lane));
    }
    __syncwarp();
  }

  // Waits for the partial sums of this CTA's rows; false if it has no rows.
  __device__ bool exchange() const {
    ptx::mbarrier_wait(cta.accumulator_full(), 0);
    // Sums replace scales that the TMA warp has cleared. The commit says nothing of those stores.
    const KTail<Tile> end{cta};
    if (end.exists()) end.wait_until_cleared();
    ptx::tcgen05_fence_after_thread_sync();
    tell_ring_is_drained();
    put();
    push();
    if (rows_of(cta.rank) == 0) return false;
    ptx::mbarrier_wait_cluster(sums(), 0);
    return true;
  }

  // Loads the partial sums that a rank has sent, for the rows that have arrived.
  __device__ void load(uint32_t rank, uint32_t (&partial)[kRows]) const {
    const uint32_t theirs = received(rank) + lane * 16, there = rows_of(cta.rank);
#pragma unroll
    for (uint32_t i = 0; i < kRows; i += kRowsOfPiece) {
      uint4 piece = make_uint4(0, 0, 0, 0);
      if (i < there) piece = ptx::ld_shared_v4_b32(theirs + i * kSumRowBytes);
      partial[i] = piece.x, partial[i + 1] = piece.y, partial[i + 2] = piece.z,
      partial[i + 3] = piece.w;
    }
  }

  __device__ static float sum_of(uint32_t a, uint32_t b) {
    return __fadd_rn(__uint_as_float(a), __uint_as_float(b));
  }

  // Adds the partial sums of this CTA's rows in the order of K. Each partition has summed from
  // zero. Two partitions give the same bits in either order. More begin at -0, which changes no
  // sum.
  __device__ void add(float (&x)[kRows]) const {
    uint32_t partial[kRows], mine[kRows];
    if (kPartitions == 2) load(cta.rank ^ 1, partial);
    ptx::tcgen05_ld_32x32b(mine, tmem + first_of(cta.rank));
    if constexpr (kPartitions == 2) {
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) x[i] = sum_of(mine[i], partial[i]);
    } else {
#pragma unroll
      for (float& one : x) one = -0.0f;
#pragma unroll 1
      for (uint32_t rank = 0; rank < kPartitions; ++rank) {
        if (rank != cta.rank) load(rank, partial);
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) {
          x[i] = sum_of(__float_as_uint(x[i]), rank == cta.rank ? mine[i] : partial[i]);
        }
      }
    }
  }
};

// Stores D with threads instead of TMA, because a slice has few rows. The staging buffer is in a
// part of the ring that holds none of the other CTAs' rows.
template <typename Tile, uint32_t kPartitions>
__device__ void store_slice(const Exchange<Tile, kPartitions>& its, const LaneColumn& column,
                            Rows to) {
  if (!its.exchange()) return;
  const uint32_t first = its.first_of(its.cta.rank), m = its.m + first;
  to.m_end = m + its.rows_of(its.cta.rank);
  float x[Exchange<Tile, kPartitions>::kRows];
  its.add(x);
  if (column.row_scales) {
    scale_by_rows(its.cta.p, column.factors, its.cta.tile().batch, m, its.lane, x);
  }
#pragma unroll
  for (float& one : x) one = column.finish(one);
  store_rows(x, to, m, its.own(first), its.lane);
}

// Rows of the slice in shared memory, for the general epilogue: address of the first row, its index
// in the tile, the number of rows, and a staging buffer.
struct SharedSums {
  uint32_t at, first, rows, staging;
};

template <typename Tile, uint32_t kPartitions>
__device__ SharedSums add_slice(const Exchange<Tile, kPartitions>& its) {
  constexpr uint32_t kRows = Exchange<Tile, kPartitions>::kRows;
  const uint32_t first = its.first_of(its.cta.rank), at = its.own(first);
  if (!its.exchange()) return {0, 0, 0, 0};
  float x[kRows];
  its.add(x);
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) {
    ptx::st_shared_f32(at + i * kSumRowBytes + its.lane * 4, x[i]);
  }
  __syncwarp();
  return {at, first, its.rows_of(its.cta.rank),
          its.cta.at.smem + its.kStagingAt + (its.half * 4 + its.band) * kHalfSumBytes};
}

// The half of the output slice that one of the eight epilogue warps stores, for the general
// epilogue. `sums` is the accumulator's first column and the warp's first lane.
template <typename Tile>
__device__ SharedSums add_partitions(const Cta<Tile>& cta, uint32_t sums, uint32_t band,
                                     uint32_t half, uint32_t lane) {
  if (cta.p.split == 2) return add_slice(Exchange<Tile, 2>(cta, sums, band, half, lane));
  return add_slice(Exchange<Tile, 4>(cta, sums, band, half, lane));
}

// The same for the fast epilogue, which stores it. The warp's columns begin at n_first.
template <typename Tile>
__device__ void store_partition(const Cta<Tile>& cta, uint32_t sums, uint32_t n_first,
                                uint32_t band, uint32_t half, uint32_t lane) {
  const Sm100Params& p = cta.p;
  const Exchange<Tile, 2> two(cta, sums, band, half, lane);
  const Exchange<Tile, 4> four(cta, sums, band, half, lane);
  const LaneColumn column(p, cta.alpha(), n_first + lane);
  const Rows to(p, cta.tile().batch, n_first, p.m);
  if (p.split == 2) {
    store_slice(two, column, to);
  } else {
    store_slice(four, column, to);
  }
}

}  // namespace nvfp4
