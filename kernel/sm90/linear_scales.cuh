// SPDX-License-Identifier: MIT
// The weight warp of gemm.cu where the scales of B are linear, [row][K/16]: TMA cannot bring a row of
// any length, so all lanes copy them to where those of a 128x4 tile would come to lie. Consumers do
// not know the difference.
#pragma once

#include <cstdint>

#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ring.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/load.cuh"

namespace nvfp4 {

// A lane's share of a stage: the four scales of 64-step lane % 4 of every eighth row.
template <typename Tile>
struct LinearScales {
  static constexpr uint32_t kCopies = Tile::kWeights / 8;
  static_assert(Tile::kSteps == 4 && Tile::kWeights % 8 == 0, "32 lanes are 8 rows of 4 steps");

  const uint8_t* from;   // those of the first row
  uint32_t row_bytes;    // K/16
  int32_t rows, scales;  // that exist, from there on: below 1 there is nothing to read
  uint32_t to;           // in shared memory

  __device__ LinearScales(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
    const Sm90Params& p = cta.p;
    const uint32_t row = cta.tile.weight_tile * Tile::kWeights + lane / 4;
    const uint32_t block = ((cta.stage_begin + i) * Tile::kSteps + lane % 4) * 4;
    row_bytes = p.k / 16;
    from = p.weight_scales + cta.tile.batch * p.weight_scales_batch_bytes +
           static_cast<uint64_t>(row) * row_bytes + block;
    rows = static_cast<int32_t>(p.n - row);
    scales = static_cast<int32_t>(row_bytes - block);
    to = cta.scales(at) + lane % 4 * kScaleTileBytes;
  }

  // Rows of this lane are 8 apart: eight times in a band of 32.
  static __device__ uint32_t place(const Cta90<Tile>& cta, uint32_t lane, uint32_t copy) {
    const uint32_t row =
        cta.tile.weight_tile * Tile::kWeights % kScaleTileRows + copy * 8 + lane / 4;
    return scale_lane(row) + scale_band(row);
  }
};

// Rows of scales begin at multiples of 4 bytes. Each copy that is under way counts for the arrival.
template <typename Tile>
__device__ void copy_linear_words(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
  const LinearScales<Tile> share(cta, i, at, lane);
#pragma unroll 4
  for (uint32_t copy = 0; copy < LinearScales<Tile>::kCopies; ++copy) {
    const bool there = static_cast<int32_t>(copy * 8) < share.rows && share.scales > 0;
    ptx::cp_async_4_if(share.to + share.place(cta, lane, copy),
                       share.from + static_cast<uint64_t>(copy * 8) * share.row_bytes, there);
  }
  ptx::cp_async_mbarrier_arrive_noinc(cta.weights_full(at));
}

// Rows begin anywhere: byte by byte, zeros beyond K, where codes are zero, too.
template <typename Tile>
__device__ void copy_linear_bytes(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
  const LinearScales<Tile> share(cta, i, at, lane);
#pragma unroll 2
  for (uint32_t copy = 0; copy < LinearScales<Tile>::kCopies; ++copy) {
    const int32_t there = static_cast<int32_t>(copy * 8) < share.rows ? share.scales : 0;
    const uint8_t* from = share.from + static_cast<uint64_t>(copy * 8) * share.row_bytes;
    uint32_t bytes[4];
#pragma unroll
    for (int32_t b = 0; b < 4; ++b) bytes[b] = ptx::ld_global_u8_if(from + b, b < there);
    ptx::st_shared_b32(share.to + share.place(cta, lane, copy),
                       bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
  }
  ptx::mbarrier_arrive(cta.weights_full(at));
}

template <typename Tile>
__device__ void load_linear_scales(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
  if (cta.p.k % kScaleTileK == 0) {
    copy_linear_words(cta, i, at, lane);
  } else {
    copy_linear_bytes(cta, i, at, lane);
  }
}

// start_weights has asked for the codes of the first stages. Every lane waits before it reads.
template <typename Tile>
__device__ void load_linear_stages(Cta90<Tile> cta, bool leads, uint32_t lane) {
  if (!Tile::kWorkspaceTokens && cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
  Tiles<Tile> tiles;
  RingPosition<Tile::kStages> at;
  const uint32_t first = min(Tile::kStagesFirst, cta.count);
  uint32_t i = 0;
  at.parity = 1;  // the first round finds every stage empty
  for (; i < first; ++i, at.advance()) load_linear_scales(cta, i, at.stage, lane);
  for (;;) {
    for (; i < cta.count; ++i, at.advance()) {
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      if (leads) load_codes(cta, i, at.stage);
      load_linear_scales(cta, i, at.stage, lane);
    }
    if (!tiles.next(cta.p)) return;
    cta.tile = tile_at(cta.p, tiles.index);
    i = 0;
  }
}

}  // namespace nvfp4
