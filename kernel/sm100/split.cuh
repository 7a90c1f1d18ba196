// SPDX-License-Identifier: MIT
// A tile whose K is cut: each CTA of a cluster has the sums of its part of K, of all tokens, and
// stores its share of the tokens. It puts its sums into its drained ring, pushes the others their
// rows, and adds the parts of its own rows in the order of K.
//
//   accumulator_full --> "my ring is drained" --arrive--> peers_ready of the other CTAs
//   tensor memory --> own ring --bytes, once peers_ready--> the other CTA's ring, its sums[band]
//   sums[band] --> parts added --> general epilogue --> D
//
//   peers_ready:  split - 1 arrivals.   sums[band]:  1 arrival (expect_tx) + the others' rows.
//   A warp's lanes have 32 weights, its band: bands meet nowhere. Only rows that exist are pushed.
//
// Bulk copies between CTAs: PTX ISA 9.7.9.25.4.1, completion on a barrier of the destination's CTA.
// They may count before its expect_tx, within the phase. Public kernels for a B200 share K in
// clusters of 4 and exchange through distributed shared memory (TensorRT-LLM, trtllm-gen:
// SplitK::Dsmem, cubins ".._cluster1x1x4_splitK4_.._sm100a").
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/descriptor.h"
#include "kernel/sm100/epilogue.cuh"

namespace nvfp4 {

// One warp's part of it. Rows count tokens of the tile.
template <typename Tile>
struct Exchange {
  static constexpr uint32_t kRowBytes = kPieceWeights * 4;
  static constexpr uint32_t kReceivedAt = 4 * Tile::kTokens * kRowBytes;
  static_assert(2 * kReceivedAt <= Tile::kStages * (Tile::kWeightBytes + Tile::kTokenBytes),
                "own and received sums lie in the ring");

  const Cta<Tile>& cta;
  uint32_t m, band, lane;
  uint32_t share;  // rows that a CTA stores

  __device__ Exchange(const Cta<Tile>& its, uint32_t first_m, uint32_t its_band, uint32_t its_lane)
      : cta(its),
        m(first_m),
        band(its_band),
        lane(its_lane),
        share(Tile::kTokens >> log2_of_split(its.p.split)) {}

  // Of the share of a rank, those that exist.
  __device__ uint32_t rows_of(uint32_t rank) const {
    const uint32_t rows = cta.p.m - m, before = rank * share;
    return rows > before ? min(rows - before, share) : 0;
  }
  __device__ uint32_t own(uint32_t row) const {
    return cta.at.smem + (band * Tile::kTokens + row) * kRowBytes;
  }
  // What a rank has sent of this CTA's share.
  __device__ uint32_t received(uint32_t rank) const {
    return cta.at.smem + kReceivedAt + (rank * 4 + band) * share * kRowBytes;
  }
  __device__ bool is_peer(uint32_t rank) const { return rank < cta.p.split && rank != cta.rank; }

  // To all peers, a lane each, by the one warp that every tile has.
  __device__ void tell_ring_is_drained() const {
    if (band == 0 && is_peer(lane)) {
      ptx::mbarrier_arrive_cluster(ptx::mapa(cta.at.peers_ready(), lane));
    }
  }

  __device__ void put(uint32_t tmem) const {
#pragma unroll 1
    for (uint32_t row = 0; row < Tile::kTokens && m + row < cta.p.m; row += kPieceTokens) {
      uint32_t acc[32];
      ptx::tcgen05_ld_32x32b_x32(acc, tmem + tmem_address(band * 32, row));
#pragma unroll
      for (uint32_t token = 0; token < kPieceTokens; ++token) {
        ptx::st_shared_b32(own(row + token) + lane * 4, acc[token]);
      }
    }
  }

  __device__ void push() const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    const uint32_t own_rows = rows_of(cta.rank);
    if (lane == cta.rank && own_rows > 0) {
      ptx::mbarrier_arrive_expect_tx(cta.at.sums(band), (cta.p.split - 1) * own_rows * kRowBytes);
    }
    const uint32_t rows = is_peer(lane) ? rows_of(lane) : 0;
    if (rows > 0) {
      ptx::mbarrier_wait_cluster(cta.at.peers_ready(), 0);
      ptx::cp_async_bulk_to_cluster(ptx::mapa(received(cta.rank), lane), own(lane * share),
                                    rows * kRowBytes, ptx::mapa(cta.at.sums(band), lane));
    }
    __syncwarp();
  }

  // Four neighbours of a row: the parts of K in their order, each of which was summed from zero.
  __device__ void add(uint32_t row, uint32_t column) const {
    const uint32_t mine = own(cta.rank * share + row) + column;
    float4 sum =
        ptx::ld_shared_v4_f32(cta.rank == 0 ? mine : received(0) + row * kRowBytes + column);
#pragma unroll 1
    for (uint32_t rank = 1; rank < cta.p.split; ++rank) {
      const uint32_t theirs = received(rank) + row * kRowBytes + column;
      const float4 part = ptx::ld_shared_v4_f32(rank == cta.rank ? mine : theirs);
      sum = make_float4(__fadd_rn(sum.x, part.x), __fadd_rn(sum.y, part.y),
                        __fadd_rn(sum.z, part.z), __fadd_rn(sum.w, part.w));
    }
    ptx::st_shared_v4_f32(mine, sum);
  }
};

// D straight from threads: a share has few rows.
template <typename Tile>
__device__ void store_share(const Exchange<Tile>& exchange, uint32_t tmem) {
  constexpr uint32_t kLanesPerRow = kPieceWeights / 4, kRows = 32 / kLanesPerRow;
  const Cta<Tile>& cta = exchange.cta;
  ptx::mbarrier_wait(cta.accumulator_full(), 0);
  ptx::tcgen05_fence_after_thread_sync();
  exchange.tell_ring_is_drained();
  exchange.put(tmem);
  exchange.push();
  const uint32_t rows = exchange.rows_of(cta.rank);
  if (rows == 0) return;
  ptx::mbarrier_wait_cluster(cta.at.sums(exchange.band), 0);
  const uint32_t row = exchange.lane / kLanesPerRow, column = exchange.lane % kLanesPerRow * 4;
#pragma unroll 1
  for (uint32_t i = row; i < rows; i += kRows) exchange.add(i, column * 4);
  const uint32_t first = cta.rank * exchange.share, m = exchange.m + first;
  const SumRows sums{exchange.own(first + row) + column * 4,
                     kRows * Exchange<Tile>::kRowBytes,
                     cta.tile().batch,
                     cta.first_weight() + exchange.band * kPieceWeights + column,
                     m + row,
                     kRows,
                     m + rows};
  store_general<4>(cta.p, sums, GeneralColumns(cta.p, sums.n), 1.0f);
}

}  // namespace nvfp4
