// SPDX-License-Identifier: MIT
// The weight warp of gemm.cu for linear scales of B, stored row after row. TMA cannot load rows of
// any length, so all lanes copy the scales to the places of a 128x4 tile. Consumers see no
// difference.
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/load.cuh"

namespace nvfp4 {

// Copies the four scales of a tile's row to shared memory. It copies asynchronously if rows begin
// at multiples of four bytes. Otherwise it copies byte by byte, with zeros beyond K, where codes
// are zero, too. `there` is the number of scales that belong to an element.
__device__ inline void copy_four_scales(uint32_t to, const uint8_t* from, int32_t there,
                                        bool words) {
  if (words) {
    ptx::cp_async_4_if(to, from, there > 0);
    return;
  }
  uint32_t bytes[4];
#pragma unroll
  for (int32_t b = 0; b < 4; ++b) bytes[b] = ptx::ld_global_u8_if(from + b, b < there);
  ptx::st_shared_b32(to, bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
}

// A lane copies four scales of every eighth row of a stage, from tile lane % 4. They belong to 64
// or 128 elements. The rows are those of B.
template <typename Tile>
__device__ void copy_linear_rows(const Sm90Params& p, const uint8_t* from, uint32_t to,
                                 uint32_t row, uint32_t row_bytes, int32_t scales, bool words) {
#pragma unroll 1
  for (uint32_t copy = 0; copy < Tile::kColumnsOfD; copy += 8, from += 8 * row_bytes) {
    const uint32_t place = (row + copy) % kScaleTileRows;  // in the 128x4 tile
    const int32_t there = row + copy < p.n ? scales : 0;
    copy_four_scales(to + scale_lane(place) + scale_band(place), from, there, words);
  }
}

template <typename Tile>
__device__ void load_linear_scales(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
  static_assert(Tile::kSteps == 4 && Tile::kColumnsOfD % 8 == 0, "32 lanes are 8 rows of 4 steps");
  const Sm90Params& p = cta.p;
  const uint32_t shift = log2_steps_per_scale_tile<Tile>(p);
  const uint32_t row_bytes = p.k / 16 >> shift;
  const bool words = row_bytes % 4 == 0;
  const uint32_t row = cta.tile.weight_tile * Tile::kColumnsOfD + lane / 4;
  const uint32_t tiles = Tile::kSteps >> shift;  // tiles of a stage
  const uint32_t block = (cta.block(i) * tiles + lane % 4) * 4;
  const int32_t scales = lane % 4 < tiles ? static_cast<int32_t>(row_bytes - block) : 0;
  const uint64_t from =
      cta.tile.batch * p.weight_scales_batch_bytes + static_cast<uint64_t>(row) * row_bytes + block;
  const uint32_t to = cta.scales(at) + lane % 4 * kScaleTileBytes;
  copy_linear_rows<Tile>(p, p.weight_scales + from, to, row, row_bytes, scales, words);
  if constexpr (Tile::kGated) {
    copy_linear_rows<Tile>(p, gated_params(p).weight_scales2 + from, to + Tile::kHalfScaleBytes,
                           row, row_bytes, scales, words);
  }
  if (words) {  // each copy in flight counts for the arrival
    ptx::cp_async_mbarrier_arrive_noinc(cta.weights_full(at));
  } else {
    ptx::mbarrier_arrive(cta.weights_full(at));
  }
}

// Loads only the codes of a k-block, if its scales are linear.
template <typename Tile>
__device__ void load_codes(const Cta90<Tile>& cta, uint32_t i, uint32_t at) {
  const uint32_t bar = cta.weights_full(at);
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kWeightBytes);
  if constexpr (Tile::kGated) return load_gated_codes(cta, i, at, bar);
  ptx::cp_async_bulk_tensor_3d(cta.weights(at), &cta.p.weights, cta.block(i) * (Tile::kK / 2),
                               cta.tile.weight_tile * Tile::kWeights, cta.tile.batch, bar,
                               ptx::kEvictFirst);
}

// Limits how many k-blocks are requested beyond those that have arrived. If consumer groups share
// the stages of the ring, a group must not wait for the next k-block of a stage before the current
// one has arrived: a barrier shows only the parity of its phase, so that wait would return at once
// (wide/tile.h). If the number of groups divides the ring, every group returns to its own stages.
template <typename Tile>
constexpr bool kGroupsShareSlots = Tile::kStages % Tile::kGroups != 0;
template <typename Tile>
constexpr uint32_t kLinearStagesAhead = Tile::kStages - Tile::kGroups;

// Replaces the first loads of start_weights and load_remaining_weights. Every lane waits before it
// reads.
template <typename Tile>
__device__ void load_linear_stages(Cta90<Tile> cta, bool leads, uint32_t lane) {
  if (cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
  RingPosition<Tile::kStages> arrived, at;
  at.parity = 1;  // the first round finds every stage empty
  uint32_t asked = 0;
  for (;;) {
#pragma unroll 1
    for (uint32_t i = 0; i < cta.count; ++i, at.advance()) {
      if (kGroupsShareSlots<Tile> && asked++ >= kLinearStagesAhead<Tile>) {
        ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
        arrived.advance();
      }
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      if (leads) load_codes(cta, i, at.stage);
      load_linear_scales(cta, i, at.stage, lane);
    }
    if (take_next_piece(cta)) continue;
    const uint32_t next = next_tile<Tile>(cta.p, cta.index);
    if (next == kNoTile) return;
    take_tile(cta, next);
  }
}

}  // namespace nvfp4
