// SPDX-License-Identifier: MIT
// Split-K: each CTA of a cluster has the sums of its K partition for all tokens of the tile, and
// stores an output slice, a range of these tokens. It pushes the other slices' rows to their CTAs
// from its drained ring, and adds its own rows in registers, in the order of K.
//
//   accumulator_full --> "my ring is drained" --arrive--> peers_ready of the other CTAs
//   tensor memory --> own ring --bytes, once peers_ready--> the other CTA's ring, its sums[band]
//   tensor memory, sums[band] --> partial sums added --> D
//
//   peers_ready counts split - 1 arrivals. sums[band] counts 1 arrival (expect_tx) and the bytes of
//   the others' rows. A warp has 32 weights, its lane band, and bands are independent. Only rows
//   that exist are pushed, rounded up to four.
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
#include "kernel/sm100/general.cuh"
#include "kernel/sm100/scaled.cuh"

namespace nvfp4 {

// On their way the sums of four rows of a lane are contiguous: 16 bytes.
constexpr uint32_t kRowsOfPiece = 4;

// One warp's side of the exchange between kParts partitions. A row is a token of the tile.
template <typename Tile, uint32_t kPartitions>
struct Exchange {
  // Number of rows that are loaded, added and stored at once. A slice is a multiple of it.
  static constexpr uint32_t kRows = Tile::kTokens / kPartitions < 32 ? 16 : 32;
  static constexpr uint32_t kReceivedAt = 4 * Tile::kTokens * kSumRowBytes;
  static_assert(2 * kReceivedAt <= Tile::kStages * (Tile::kWeightBytes + Tile::kTokenBytes),
                "own and received sums lie in the ring");
  static_assert(Tile::kTokens % (kPartitions * kRows) == 0 && kRows % 16 == 0,
                "slices fit the tile");

  const Cta<Tile>& cta;
  uint32_t tmem;  // first column of the accumulator, first lane of the warp
  uint32_t m, band, lane;
  uint32_t rows;   // rows that exist
  uint32_t slice;  // rows that a CTA stores; the last CTAs store fewer

  __device__ Exchange(const Cta<Tile>& its, uint32_t its_tmem, uint32_t its_band, uint32_t its_lane)
      : cta(its), tmem(its_tmem), m(its.first_token()), band(its_band), lane(its_lane) {
    rows = min(cta.p.m - m, Tile::kTokens);
    slice = (rows + kRows * kPartitions - 1) / (kRows * kPartitions) * kRows;
  }

  // Rows of a rank's slice that exist.
  __device__ uint32_t rows_of(uint32_t rank) const {
    const uint32_t before = rank * slice;
    return rows > before ? min(rows - before, slice) : 0;
  }
  __device__ uint32_t pushed_of(uint32_t rank) const {
    return (rows_of(rank) + kRowsOfPiece - 1) / kRowsOfPiece * kRowsOfPiece;
  }
  __device__ uint32_t own(uint32_t row) const {
    return cta.at.smem + (band * Tile::kTokens + row) * kSumRowBytes;
  }
  // Address of the partial sums that a rank has sent for this CTA's slice.
  __device__ uint32_t received(uint32_t rank) const {
    return cta.at.smem + kReceivedAt + (rank * 4 + band) * slice * kSumRowBytes;
  }
  __device__ bool is_peer(uint32_t rank) const { return rank < kPartitions && rank != cta.rank; }

  // Signals every peer, with one lane per peer. The warp that every tile has does this.
  __device__ void tell_ring_is_drained() const {
    if (band == 0 && is_peer(lane)) {
      ptx::mbarrier_arrive_cluster(ptx::mapa(cta.at.peers_ready(), lane));
    }
  }

  // Copies the rows of the other CTAs' slices into the ring.
  __device__ void put() const {
    const uint32_t own_first = cta.rank * slice;
#pragma unroll 1
    for (uint32_t row = 0; row < rows; row += kRows) {
      if (row - own_first < slice) continue;
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
      ptx::mbarrier_arrive_expect_tx(cta.at.sums(band),
                                     (kPartitions - 1) * own_rows * kSumRowBytes);
    }
    const uint32_t their_rows = is_peer(lane) ? pushed_of(lane) : 0;
    if (their_rows > 0) {
      ptx::mbarrier_wait_cluster(cta.at.peers_ready(), 0);
      ptx::cp_async_bulk_to_cluster(ptx::mapa(received(cta.rank), lane), own(lane * slice),
                                    their_rows * kSumRowBytes, ptx::mapa(cta.at.sums(band), lane));
    }
    __syncwarp();
  }

  // Waits for the partial sums of this CTA's rows; false if it has no rows.
  __device__ bool exchange() const {
    ptx::mbarrier_wait(cta.accumulator_full(), 0);
    ptx::tcgen05_fence_after_thread_sync();
    tell_ring_is_drained();
    put();
    push();
    if (rows_of(cta.rank) == 0) return false;
    ptx::mbarrier_wait_cluster(cta.at.sums(band), 0);
    return true;
  }

  // Loads the partial sums that a rank has sent, for the rows that have arrived.
  __device__ void load(uint32_t rank, uint32_t row, uint32_t (&partial)[kRows]) const {
    const uint32_t theirs = received(rank) + row * kSumRowBytes + lane * 16;
    const uint32_t there = rows_of(cta.rank) - row;
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
  __device__ void add(uint32_t row, float (&x)[kRows]) const {
    uint32_t partial[kRows], mine[kRows];
    if (kPartitions == 2) load(cta.rank ^ 1, row, partial);
    ptx::tcgen05_ld_32x32b(mine, tmem + cta.rank * slice + row);
    if constexpr (kPartitions == 2) {
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) x[i] = sum_of(mine[i], partial[i]);
    } else {
#pragma unroll
      for (float& one : x) one = -0.0f;
#pragma unroll 1
      for (uint32_t rank = 0; rank < kPartitions; ++rank) {
        if (rank != cta.rank) load(rank, row, partial);
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
  constexpr uint32_t kRows = Exchange<Tile, kPartitions>::kRows;
  if (!its.exchange()) return;
  const uint32_t first = its.cta.rank * its.slice, m = its.m + first;
  const uint32_t rows = its.rows_of(its.cta.rank);
  to.m_end = m + rows;
#pragma unroll 1
  for (uint32_t row = 0; row < rows; row += kRows) {
    float x[kRows];
    its.add(row, x);
    if (column.row_scales) {
      scale_by_rows(its.cta.p, column.factors, its.cta.tile().batch, m + row, its.lane, x);
    }
#pragma unroll
    for (float& one : x) one = column.finish(one);
    store_rows(x, to, m + row, its.own(first), its.lane);
  }
}

// Rows of the slice in shared memory, for the general epilogue: address of the first row, its index
// in the tile, and the number of rows. For a D with scales they are already scaled, and stored as
// turned() says.
struct SharedSums {
  uint32_t at, first, rows;
};

template <typename Tile, uint32_t kPartitions>
__device__ SharedSums add_slice(const Exchange<Tile, kPartitions>& its, const LaneColumn& column,
                                bool rotates) {
  constexpr uint32_t kRows = Exchange<Tile, kPartitions>::kRows;
  const uint32_t first = its.cta.rank * its.slice;
  if (!its.exchange()) return {0, 0, 0};
  const uint32_t rows = its.rows_of(its.cta.rank);
#pragma unroll 1
  for (uint32_t row = 0; row < rows; row += kRows) {
    float x[kRows];
    its.add(row, x);
    if (column.row_scales) {
      scale_by_rows(its.cta.p, column.factors, its.cta.tile().batch, its.m + first + row, its.lane,
                    x);
    }
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint32_t place = rotates ? rotated(i, its.lane) : i * kSumRowBytes + its.lane * 4;
      ptx::st_shared_f32(its.own(first + row) + place, column.finish(x[i]));
    }
  }
  __syncwarp();
  return {its.own(first), first, rows};
}

template <typename Tile>
__device__ void store_slice_scaled(const Cta<Tile>& cta, const SharedSums& slice, uint32_t n_first,
                                   uint32_t lane) {
  const uint32_t m = cta.first_token() + slice.first;
#pragma unroll 1
  for (uint32_t row = 0; row < slice.rows; row += 32) {
    store_scaled_rows(cta.p, cta.tile().batch, n_first, m + row, m + slice.rows,
                      slice.at + row * kSumRowBytes, lane);
  }
}

template <typename Tile, bool kScales>
__device__ void store_slice_general(const Cta<Tile>& cta, const SharedSums& slice, uint32_t band,
                                    uint32_t lane) {
  if (slice.rows == 0) return;
  const uint32_t row = lane / kLanesPerSumRow, n = lane % kLanesPerSumRow * 4;
  const uint32_t m = cta.first_token() + slice.first;
  const SumRows sums{slice.at + row * kSumRowBytes + n * 4,
                     kSumRows * kSumRowBytes,
                     cta.tile().batch,
                     cta.first_weight() + band * kSubTileWeights + n,
                     m + row,
                     kSumRows,
                     m + slice.rows};
  store_general<4, true, kScales>(cta.p, sums, GeneralColumns(cta.p, cta.p.alpha, sums.n), 1.0f);
}

// One of the four epilogue warps stores its output slice. Its columns begin at n_first. `sums` is
// the accumulator's first column and the warp's first lane.
template <typename Tile, bool kGeneral, bool kScales>
__device__ void store_partition(const Cta<Tile>& cta, uint32_t sums, uint32_t n_first,
                                uint32_t band, uint32_t lane) {
  const Sm100Params& p = cta.p;
  const Exchange<Tile, 2> two(cta, sums, band, lane);
  const Exchange<Tile, 4> four(cta, sums, band, lane);
  if constexpr (kGeneral) {
    const bool scaled = kScales && p.epilogue.kind == kEpilogueScaled;
    const LaneColumn column = scaled ? LaneColumn(p, p.alpha, n_first + lane) : LaneColumn();
    const SharedSums slice =
        p.split == 2 ? add_slice(two, column, scaled) : add_slice(four, column, scaled);
    if (scaled) {
      store_slice_scaled(cta, slice, n_first, lane);
    } else {
      store_slice_general<Tile, kScales>(cta, slice, band, lane);
    }
  } else {
    const LaneColumn column(p, cta.alpha(), n_first + lane);
    const Rows to(p, cta.tile().batch, n_first, p.m);
    if (p.split == 2) {
      store_slice(two, column, to);
    } else {
      store_slice(four, column, to);
    }
  }
}

}  // namespace nvfp4
