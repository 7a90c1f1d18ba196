// SPDX-License-Identifier: MIT
// The warp that fills the ring: codes by TMA, which writes zeros beyond K and beyond the rows.
// Scales come in 128x4 tiles by bulk copies, or row after row, which no bulk copy takes. Then all
// lanes copy them to the places that they have in such a tile: consumers see no difference.
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/common/scale_tile.h"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm120/cta.cuh"

namespace nvfp4 {

// What the copies of an operand need. kLanes of the 32 lanes of its scale tiles are in a stage.
template <typename Tile>
struct Sm120Weights {
  static constexpr uint32_t kRows = Tile::kWeights, kLanes = 32;
  static constexpr uint32_t kCodesAt = 0, kScalesAt = Tile::kWeightScalesAt;
  static constexpr uint64_t kPolicy = ptx::kEvictFirst;
  const TensorMap* map;
  const uint8_t* scales;  // those of its batch
  uint32_t first, rows;   // first row of the tile; rows of the matrix
  bool linear;

  __device__ explicit Sm120Weights(const Sm120Cta<Tile>& cta)
      : map(&cta.p.weights),
        scales(cta.p.weight_scales + cta.batch * cta.p.weight_scales_batch_bytes),
        first(cta.n),
        rows(cta.p.n),
        linear(cta.p.weight_scales_linear != 0) {}
};

template <typename Tile>
struct Sm120Tokens {
  static constexpr uint32_t kRows = Tile::kTokens, kLanes = Tile::kTokenScaleLanes;
  static constexpr uint32_t kCodesAt = Tile::kTokensAt, kScalesAt = Tile::kTokenScalesAt;
  static constexpr uint64_t kPolicy = ptx::kEvictLast;
  const TensorMap* map;
  const uint8_t* scales;
  uint32_t first, rows;
  bool linear;

  __device__ explicit Sm120Tokens(const Sm120Cta<Tile>& cta)
      : map(&cta.p.tokens),
        scales(cta.p.token_scales + cta.batch * cta.p.token_scales_batch_bytes),
        first(cta.m),
        rows(cta.p.m),
        linear(cta.p.token_scales_linear != 0) {}
};

template <typename Tile, typename Operand>
__device__ void copy_tiled_scales(const Sm120Cta<Tile>& cta, const Operand& x, uint32_t i,
                                  uint32_t s) {
  const uint32_t steps = cta.steps(i), k_steps = (cta.p.k + kScaleTileK - 1) / kScaleTileK;
  const uint64_t tile =
      scale_tile_number(x.first / kScaleTileRows, k_steps, (cta.first_block + i) * Tile::kSteps);
  const uint8_t* const from = x.scales + tile * kScaleTileBytes + scale_lane(x.first);
  const uint32_t to = cta.stage(s) + Operand::kScalesAt;
  if constexpr (Operand::kLanes == 32) {
    ptx::cp_async_bulk(to, x.scales + tile * kScaleTileBytes, steps * kScaleTileBytes, cta.full(s),
                       Operand::kPolicy);
  } else {
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step) {
      ptx::cp_async_bulk(to + step * Operand::kLanes * 16, from + step * kScaleTileBytes,
                         Operand::kLanes * 16, cta.full(s), Operand::kPolicy);
    }
  }
}

// A lane copies the four scales of one step of every n-th row. A row has K / 16 bytes, so if K is
// no multiple of 64, words do not begin at multiples of four bytes, and the lane copies them byte
// by byte.
template <typename Tile, typename Operand>
__device__ void copy_linear_scales(const Sm120Cta<Tile>& cta, const Operand& x, uint32_t i,
                                   uint32_t s, uint32_t lane) {
  constexpr uint32_t kRowsAtOnce = 32 / Tile::kSteps;
  const uint32_t step = lane % Tile::kSteps, row_bytes = cta.p.k / 16;
  if (step >= cta.steps(i)) return;
  const uint32_t begin = ((cta.first_block + i) * Tile::kSteps + step) * 4;
  const uint32_t count = min(row_bytes - begin, 4u);
  const uint32_t to = cta.stage(s) + Operand::kScalesAt + step * Operand::kLanes * 16;
#pragma unroll 1
  for (uint32_t row = lane / Tile::kSteps; row < Operand::kRows; row += kRowsAtOnce) {
    const bool there = x.first + row < x.rows;
    const uint8_t* const from =
        there ? x.scales + static_cast<uint64_t>(x.first + row) * row_bytes + begin : x.scales;
    const uint32_t at = to + scale_word_at<Operand::kLanes>((x.first + row) % kScaleTileRows);
    if (row_bytes % 4 == 0) {
      ptx::cp_async_4_if(at, from, there);
      continue;
    }
    uint32_t word = 0;
#pragma unroll
    for (uint32_t b = 0; b < 4; ++b) {
      word |= ptx::ld_global_u8_if(from + b, there && b < count) << 8 * b;
    }
    ptx::st_shared_b32(at, word);
  }
}

// Loads an operand's part of the i-th k-block into stage s.
template <bool kLinear, typename Tile, typename Operand>
__device__ void load_operand(const Sm120Cta<Tile>& cta, const Operand& x, uint32_t i, uint32_t s,
                             bool leads, uint32_t lane) {
  if (leads) {
    ptx::cp_async_bulk_tensor_3d(cta.stage(s) + Operand::kCodesAt, x.map,
                                 (cta.first_block + i) * Tile::kRowBytes, x.first, cta.batch,
                                 cta.full(s), Operand::kPolicy);
    if (!kLinear || !x.linear) copy_tiled_scales(cta, x, i, s);
  }
  if (kLinear && x.linear) copy_linear_scales(cta, x, i, s, lane);
}

// The barrier of a stage counts bytes, one arrival, and one of each lane that copies scales.
template <typename Tile>
__device__ void init_barriers(const Sm120Cta<Tile>& cta) {
  for (uint32_t s = 0; s < Tile::kStages; ++s) {
    ptx::mbarrier_init(cta.full(s), cta.has_linear_scales() ? 33 : 1);
    ptx::mbarrier_init(cta.empty(s), Tile::kWarps);
  }
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();  // TMA signals them next
}

// Boxes count whole, also where they reach beyond a matrix.
template <typename Tile>
__device__ void expect_block(const Sm120Cta<Tile>& cta, uint32_t i, uint32_t s, bool leads) {
  if (!leads) return;
  const uint32_t steps = cta.steps(i);
  uint32_t bytes = Tile::kWeightBytes + Tile::kTokenBytes;
  if (cta.p.weight_scales_linear == 0) bytes += steps * Tile::kWeightScaleBytes;
  if (cta.p.token_scales_linear == 0) bytes += steps * Tile::kTokenScaleBytes;
  ptx::mbarrier_arrive_expect_tx(cta.full(s), bytes);
}

// What this lane has copied itself, of both operands.
template <typename Tile>
__device__ void arrive_for_scales(const Sm120Cta<Tile>& cta, uint32_t s) {
  if (cta.p.k % 64 == 0) {
    ptx::cp_async_mbarrier_arrive_noinc(cta.full(s));
  } else {
    ptx::mbarrier_arrive(cta.full(s));
  }
}

// Weights that no earlier grid writes are loaded into the whole ring before that grid has ended.
// kLinear: all lanes copy scales of an operand. Otherwise the leader runs alone, so that ptxas
// knows its copies to be one thread's.
template <bool kLinear, typename Tile>
__device__ void fill_ring(const Sm120Cta<Tile>& cta, bool leads, uint32_t lane) {
  const Sm120Weights<Tile> weights(cta);
  const Sm120Tokens<Tile> tokens(cta);
  const uint32_t first = min(Tile::kStages, cta.blocks);
  const bool early = cta.p.weights_are_static != 0;
  if (!early) ptx::griddepcontrol_wait();
#pragma unroll 1
  for (uint32_t i = 0; i < first; ++i) {
    expect_block(cta, i, i, leads);
    load_operand<kLinear>(cta, weights, i, i, leads, lane);
  }
  if (early) ptx::griddepcontrol_wait();
#pragma unroll 1
  for (uint32_t i = 0; i < first; ++i) {
    load_operand<kLinear>(cta, tokens, i, i, leads, lane);
    if (kLinear) arrive_for_scales(cta, i);
  }
  ptx::griddepcontrol_launch_dependents();
  RingPosition<Tile::kStages> at;
#pragma unroll 1
  for (uint32_t i = first; i < cta.blocks; ++i, at.advance()) {
    ptx::mbarrier_wait(cta.empty(at.stage), at.parity);  // of the round before
    expect_block(cta, i, at.stage, leads);
    load_operand<kLinear>(cta, weights, i, at.stage, leads, lane);
    load_operand<kLinear>(cta, tokens, i, at.stage, leads, lane);
    if (kLinear) arrive_for_scales(cta, at.stage);
  }
}

// The warp's lanes together.
template <typename Tile>
__device__ void run_producer(const Sm120Cta<Tile>& cta, uint32_t lane) {
  const bool leads = ptx::elect_sync();
  if (cta.has_linear_scales()) {
    fill_ring<true>(cta, leads, lane);
  } else if (leads) {
    fill_ring<false>(cta, true, lane);
  }
}

}  // namespace nvfp4
