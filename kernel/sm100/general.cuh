// SPDX-License-Identifier: MIT
// The general epilogue: D in any type and order, with C, bias, activation, maxima and scales, of a
// product or a gated one. As in the fast epilogue a lane has a column of D, and 16 of its rows in
// registers, so everything before the store needs no shared memory, two rows share an instruction,
// and no step waits for the one before it.
#pragma once

#include <cstdint>

#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/boxes.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/gated.cuh"
#include "kernel/sm100/lane_amax.cuh"
#include "kernel/sm100/lane_c.cuh"
#include "kernel/sm100/lane_rows.cuh"
#include "kernel/sm100/needs.cuh"
#include "kernel/sm100/scaled.cuh"
#include "kernel/sm100/silu.cuh"

namespace nvfp4 {

// Multiplies half a sub-tile of sums by the factors of rows and columns.
__device__ inline void scale_sums(const Sm100Params& p, const LaneColumn& column, Needs needs,
                                  HalfRows rows, uint32_t lane, uint32_t (&sums)[kHalfRows],
                                  LaneRows& x) {
  // Rows that do not exist have any contents, which no branch may depend on.
  if (rows.count < kHalfRows) {
#pragma unroll
    for (uint32_t i = 0; i < kHalfRows; ++i) {
      sums[i] = i < rows.count ? sums[i] : 0;
    }
  }
  if (needs.any_of(kNeedsRowFactors)) {
    scale_by_rows(p, column.factors, rows.batch, rows.m, lane, sums);
  }
  const ptx::F32x2 scale = ptx::both(column.scale);
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; ++i) x[i] = __uint_as_float(sums[i]);
  each_two(x, [&](ptx::F32x2 two, uint32_t) { return ptx::mul(scale, two); });
}

// Adds the bias of each row, of which each lane loads one; or that of the column, which is -0 where
// there is none.
__device__ inline void add_row_bias(uint32_t type, const void* bias, HalfRows rows, uint32_t lane,
                                    LaneRows& x) {
  const float of_row = load_element(bias, type, rows.m + lane, lane < rows.count);
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; ++i) {
    x[i] = __fadd_rn(x[i], __shfl_sync(0xFFFFFFFF, of_row, i));
  }
}
__device__ inline void add_column_bias(const LaneColumn& column, LaneRows& x) {
  const ptx::F32x2 of_column = ptx::both(column.bias);
  each_two(x, [&](ptx::F32x2 two, uint32_t) { return ptx::add(two, of_column); });
}

// Puts a lane's rows to a box of columns, one behind the other.
__device__ inline void put_column(const LaneRows& x, uint32_t type, uint32_t box, uint32_t lane) {
  const uint32_t at = box + (lane * kHalfRows << log2_bytes(type));
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; i += 4) {
    const float four[4] = {x[i], x[i + 1], x[i + 2], x[i + 3]};
    if (type == kTypeF32) {
      ptx::st_shared_v4_f32(at + i * 4, make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]));
    } else {
      ptx::st_shared_v2_b32(at + i * 2, narrow_four(type, four));
    }
  }
}

// Stores a lane's rows of a D by columns, four after four others, as activate_by_four goes.
__device__ inline void store_column(const Sm100Params& p, HalfRows rows, uint32_t n, LaneRows& x) {
  const EpilogueParams& e = p.epilogue;
  if (n >= p.n) return;
  const int64_t first = rows.batch * p.d_batch_stride + rows.m * e.d_row + n * e.d_column;
#pragma unroll 1
  for (uint32_t i = 0; i < rows.count; i += 4) {
    const float four[4] = {x[0], x[1], x[2], x[3]};
    store_four(p.d, e.d_type, first + i * e.d_row, e.d_row, min(rows.count - i, 4u), false, four);
#pragma unroll
    for (uint32_t j = 4; j < kHalfRows; ++j) x[j - 4] = x[j];
  }
}

// Stores half a sub-tile, the warp's i-th: as a box if that is how D leaves, else by threads.
template <typename Tile>
__device__ void store_half(const Boxes<Tile, true>& boxes, Needs needs, const Rows& to,
                           HalfRows rows, uint32_t i, uint32_t staging, LaneRows& x) {
  const bool by_tma = Tile::kStoresByTma && needs.any_of(kNeedsTma);
  const bool by_row = !needs.any_of(kNeedsColumns);
  if (!by_row && !by_tma) {
    return store_column(boxes.p, rows, boxes.n_first + boxes.lane, x);
  }
  const uint32_t at = by_tma ? boxes.buffers.box(i) : staging;
  if (by_tma) boxes.make_room();
  if (by_row) {
    put_rows(x, to.type, at, boxes.lane);
  } else {
    put_column(x, to.type, at, boxes.lane);
  }
  if (by_tma) return boxes.send(i, rows.m, by_row);
  __syncwarp();
  store_staged<kHalfRows>(to, rows.m, at, boxes.lane);
}

// Where a warp's sums are, half a sub-tile after the other: in tensor memory, or, of a CTA that
// shares its tile, the rows of its slice in shared memory.
template <typename Tile>
struct Sums {
  uint32_t tmem, at;  // of row `first`
  uint32_t lane;
  uint32_t first, m, end;  // rows of D
  bool shared;
  uint32_t staging;  // of a shared tile: behind what CTAs exchange

  // Halves of a sub-tile go to the two warps of a lane band in turn, halves of a slice to one.
  __device__ uint32_t step() const { return shared ? kHalfRows : Tile::kHalves * kHalfRows; }

  __device__ void load(uint32_t row, uint32_t (&sums)[kHalfRows]) const {
    ptx::tcgen05_ld_32x32b(sums, tmem + (row - first));
    if (shared) load_shared(row, sums);
  }
  __device__ void load_shared(uint32_t row, uint32_t (&sums)[kHalfRows]) const {
#pragma unroll
    for (uint32_t i = 0; i < kHalfRows; ++i) {
      sums[i] = 0;
      if (row + i >= end) continue;
      sums[i] = ptx::ld_shared_b32(at + (row + i - first) * kSumRowBytes + lane * 4);
    }
  }
};

// One warp drains its 32 lanes of an accumulator, or of both of a gated product, for every other
// half of a sub-tile. Differs from drain() of epilogue.cuh in what it does with it.
template <typename Tile, bool kScales>
__device__ void drain_general(const GateAlphas& alphas, const LaneColumn& column,
                              const LaneColumn& second, const Sums<Tile>& from,
                              const Boxes<Tile, true>& boxes) {
  const Sm100Params& p = boxes.p;
  const EpilogueParams& e = p.epilogue;
  const uint32_t lane = boxes.lane, n = boxes.n_first + lane, end = from.end;
  const uint32_t staging = from.shared ? from.staging : boxes.buffers.sums();
  const uint32_t activation = e.activation % kTakesAmax;
  const LaneC c(p, boxes.batch, n);
  const Needs needs = Needs::of<Tile, kScales>(p, !Tile::kGated && c.type != kTypeNone,
                                               boxes.used() && !from.shared);
  const LaneBlock block(p, boxes.batch, boxes.n_first, lane, alphas.d_scales);
  Rows to(p, boxes.batch, boxes.n_first, end);
  to.type = needs.type();
  LaneAmax amax;
  uint32_t m = from.m, i = 0;
  if (m >= end) return;
  uint32_t sums[kHalfRows], second_sums[kHalfRows];
  from.load(m, sums);
#pragma unroll 1
  do {
    const uint32_t next = m + from.step();
    const HalfRows rows{boxes.batch, m, min(end - m, kHalfRows)};
    LaneRows x, y;
    uint32_t c_bits[kHalfRows];
    if (needs.any_of(kNeedsC)) c.load(m, rows.count, c_bits);
    if constexpr (Tile::kGated) {
      ptx::tcgen05_ld_32x32b(second_sums, from.tmem + Tile::kTokens + (m - from.first));
    }
    scale_sums(p, column, needs, rows, lane, sums, x);
    // The next half is loaded while this one is stored; after the last one that again.
    from.load(next < end ? next : m, sums);
    if constexpr (Tile::kGated) scale_sums(p, second, needs, rows, lane, second_sums, y);
    if (needs.any_of(kNeedsC | kNeedsRowBias)) {
      if (needs.any_of(kNeedsC)) c.add(c_bits, x);
      if (needs.any_of(kNeedsRowBias)) {
        add_row_bias(e.bias_type, e.bias, rows, lane, x);
        if constexpr (Tile::kGated) {
          add_row_bias(e.bias_type, gated_params(p).gate.bias2, rows, lane, y);
        }
      }
    }
    add_column_bias(column, x);
    if constexpr (Tile::kGated) {
      add_column_bias(second, y);
      multiply_lanes(needs, activation, gated_params(p).gate, x, y);
    }
    if (needs.any_of(kNeedsActivation | kNeedsAmax)) {
      if (!Tile::kGated && needs.any_of(kNeedsActivation)) {
        activate_lane(needs.any_of(kNeedsSilu), activation, x);
      }
      if (needs.any_of(kNeedsAmax)) amax.take(p, rows, n, lane, x);
    }
    if (needs.any_of(kNeedsScales)) {
      put_rotated(x, staging, lane);
      __syncwarp();
      store_scaled_rows(e, block, m, end, staging, needs.type() == kTypeMxfp4,
                        !needs.any_of(kNeedsBytes));
      __syncwarp();  // the next half overwrites the buffer
    } else {
      store_half(boxes, needs, to, rows, i, staging, x);
    }
    m = next, ++i;
  } while (m < end);
  if (needs.any_of(kNeedsAmax)) amax.put(e);
}

}  // namespace nvfp4
