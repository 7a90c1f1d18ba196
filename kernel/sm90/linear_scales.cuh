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

// Copies the four scales of a tile's row byte by byte, for rows that begin anywhere, with zeros
// beyond K, where codes are zero, too. `there` is the number of scales that belong to an element.
__device__ inline void copy_four_scales(uint32_t to, const uint8_t* from, int32_t there) {
  uint32_t bytes[4];
#pragma unroll
  for (int32_t b = 0; b < 4; ++b) bytes[b] = ptx::ld_global_u8_if(from + b, b < there);
  ptx::st_shared_b32(to, bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
}

// Offset of a row in its tile of scales. `row` is a multiple of 32 and at most 7 more, so that each
// further row is at a constant distance.
__device__ constexpr uint32_t place_of_row(uint32_t row) {
  return scale_lane(row) + scale_band(row % kScaleTileRows);
}

// A lane copies four scales of every eighth row of a stage, from tile lane % 4. They belong to 64
// or 128 elements. The rows are those of B. One warp copies for all consumers, so the loop must not
// take longer than the copies. Wide tiles have no registers for the addresses of all of them, and
// 64x16 for none but one.
template <typename Tile>
constexpr uint32_t kCopiesAtOnce =
    Tile::kBlockSums                                                       ? 8
    : Tile::kTokens == 16 && Tile::kWeights == 64 && !Tile::kNaturalTokens ? 1
                                                                           : 4;
template <typename Tile>
__device__ void copy_linear_words(const uint8_t* from, uint32_t to, int32_t rows,
                                  uint32_t row_bytes) {
#pragma unroll(kCopiesAtOnce <Tile>)
  for (int32_t copy = 0; copy < static_cast<int32_t>(Tile::kColumnsOfD); copy += 8) {
    ptx::cp_async_4_if(to + place_of_row(copy), from + static_cast<uint64_t>(copy) * row_bytes,
                       copy < rows);
  }
}

// The same if rows do not begin at multiples of four bytes. `there` is the number of scales.
template <typename Tile>
__device__ void copy_linear_bytes(const uint8_t* from, uint32_t to, int32_t rows,
                                  uint32_t row_bytes, int32_t there) {
#pragma unroll 1
  for (int32_t copy = 0; copy < static_cast<int32_t>(Tile::kColumnsOfD); copy += 8) {
    copy_four_scales(to + place_of_row(copy), from, copy < rows ? there : 0);
    from += 8 * row_bytes;
  }
}

// From row `row` of B on.
template <typename Tile>
__device__ void copy_linear_rows(const Sm90Params& p, const uint8_t* from, uint32_t to,
                                 uint32_t row, uint32_t row_bytes, int32_t scales, bool words) {
  static_assert(Tile::kColumnsOfD % 32 == 0);
  const int32_t rows = scales > 0 ? static_cast<int32_t>(p.n - row) : 0;  // that have such scales
  to += place_of_row(row);
  if (words) {
    copy_linear_words<Tile>(from, to, rows, row_bytes);
  } else {
    copy_linear_bytes<Tile>(from, to, rows, row_bytes, scales);
  }
}

template <typename Tile>
__device__ void load_linear_scales(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t lane) {
  static_assert(Tile::kSteps == 4 && Tile::kColumnsOfD % 8 == 0, "32 lanes are 8 rows of 4 steps");
  const Sm90Params& p = cta.p;
  const uint32_t shift = log2_steps_per_scale_tile<Tile>(p);
  const uint32_t row_bytes = p.k / 16 >> shift;
  const bool words = Tile::kLinear || row_bytes % 4 == 0;
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

template <typename Tile>
__device__ void load_linear_stage(const Cta90<Tile>& cta, uint32_t i, uint32_t at, bool leads,
                                  uint32_t lane) {
  if (leads) load_codes(cta, i, at);
  load_linear_scales(cta, i, at, lane);
}

// The scales of the k-blocks whose codes start_weights has requested. Every lane waits before it
// reads.
template <typename Tile>
__device__ void start_linear_scales(const Cta90<Tile>& cta, uint32_t lane) {
  if (cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
#pragma unroll 1
  for (uint32_t i = 0; i < min(Tile::kStagesFirst, cta.count); ++i) {
    load_linear_scales(cta, i, i, lane);
  }
}

// load_remaining_weights by all lanes. Tiles that start late have one group, whose ring is the only
// limit.
template <typename Tile>
__device__ void load_remaining_linear(Cta90<Tile> cta, bool leads, uint32_t lane) {
  static_assert(kStartsLinear<Tile> || Tile::kGroups == 1);
  RingPosition<Tile::kStages> arrived, at;
  uint32_t i = kStartsLinear<Tile> ? min(Tile::kStagesAhead, cta.count) : 0;
  if (!kStartsLinear<Tile> && cta.p.weights_are_static == 0) ptx::griddepcontrol_wait();
  if constexpr (Tile::kStagesFirst < Tile::kStagesAhead) {
    ptx::griddepcontrol_wait();  // see kStagesFirst
#pragma unroll 1
    for (uint32_t first = Tile::kStagesFirst; first < i; ++first) {
      load_linear_stage(cta, first, first, leads, lane);
    }
  }
  at.stage = i;
  at.parity = 1;  // the first round finds every stage empty
  for (;;) {
#pragma unroll 1
    for (; i < cta.count; ++i, arrived.advance(), at.advance()) {
      if (kStartsLinear<Tile>) {
        ptx::mbarrier_wait(cta.weights_full(arrived.stage), arrived.parity);
      }
      ptx::mbarrier_wait(cta.weights_empty(at.stage), at.parity);
      load_linear_stage(cta, i, at.stage, leads, lane);
    }
    i = 0;
    if (take_next_piece(cta)) continue;
    const uint32_t next = next_tile<Tile>(cta.p, cta.index);
    if (next == kNoTile) return;
    take_tile(cta, next);
  }
}

}  // namespace nvfp4
