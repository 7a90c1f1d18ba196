// SPDX-License-Identifier: MIT
// The fast epilogue: D is row-major, and everything applied to a sum depends on its column alone
// (alpha, tensor scales, a bias for each column, rounding to fp16 or bf16, or fp32 unchanged). The
// general epilogue (general.cuh) handles everything else, in entries of its own.
//
// The weights are the MMA's A operand, so a lane of tensor memory is a column n of D and a column
// of tensor memory is a row m. Scale and bias therefore need one register each, but the values that
// one thread reads lie d_ld apart in D. Each warp transposes its 32 x 32 sub-tile in shared memory,
// then stores rows with 16 bytes per lane, or the whole sub-tile as a TMA box.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm100/boxes.cuh"

namespace nvfp4 {

// Scale and bias of a lane's column, applied in the order of kernel/common/epilogue.h. A missing
// bias is -0, which changes no sum, not even +0 or -0.
struct LaneColumn {
  float scale = 0, bias = -0.0f;
  ColumnScale factors;  // used where A has a tensor scale for each row; then `scale` is 1
  bool row_scales = false;

  // A column that changes no sum.
  __device__ LaneColumn() : scale(1) {}
  // An earlier grid may write the factors and the bias. They are loaded before the sums are ready.
  // The bias of the rows' group begins at element `bias_first`.
  __device__ LaneColumn(const Sm100Params& p, float alpha, uint32_t n, int64_t bias_first = 0,
                        bool has_bias = true) {
    const EpilogueParams& e = p.epilogue;
    scale = alpha;
    if (e.kind <= kEpilogueBf16) return;
    row_scales = e.a_scale_per_row != 0;
    ptx::griddepcontrol_wait();
    if (n >= p.n) return;
    factors = ColumnScale(e, alpha, n);
    scale = row_scales ? 1.0f : factors.scale;
    if (e.bias_type != kTypeNone && has_bias) {
      bias = load_element(e.bias, e.bias_type, bias_first + n, true);
    }
  }
  __device__ float finish(float sum) const { return __fadd_rn(__fmul_rn(scale, sum), bias); }
};

// Multiplies a sum, or the bits of one, in place.
__device__ inline void multiply_sum(float& sum, float scale) { sum = __fmul_rn(scale, sum); }
__device__ inline void multiply_sum(uint32_t& sum, float scale) {
  sum = __float_as_uint(__fmul_rn(scale, __uint_as_float(sum)));
}

// Multiplies a lane's column of sums by the tensor scales of rows m + i of a batch and of the
// column. Each lane loads the scale of one row, or 0 beyond M. The caller has waited for earlier
// grids.
template <typename Sum, uint32_t kRows>
__device__ void scale_by_rows(const Sm100Params& p, const ColumnScale& factors, uint32_t batch,
                              uint32_t m, uint32_t lane, Sum (&sums)[kRows]) {
  float a_scale = 0;
  if (m + lane < p.m) a_scale = load_scalar(row_scale_at(p, batch, m + lane));
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) {
    multiply_sum(sums[i], factors.of_row(__shfl_sync(0xFFFFFFFF, a_scale, i)));
  }
}

// The part of D that one warp stores: columns from n_first on, rows below m_end.
struct Rows {
  uint8_t* d;  // row 0 of the warp's columns
  int64_t row_bytes;
  uint32_t type, m_end, columns;
  bool vectors;  // 16-byte stores are aligned, and all of the warp's 32 columns exist

  __device__ Rows(const Sm100Params& p, uint32_t batch, uint32_t n_first, uint32_t end) {
    type = p.epilogue.d_type;
    const uint32_t shift = log2_bytes(type);
    d = static_cast<uint8_t*>(p.d) + ((batch * p.d_batch_stride + n_first) << shift);
    row_bytes = p.d_ld << shift;
    m_end = end;
    columns = p.n - n_first;
    const uint32_t odd = (p.d_ld | p.d_batch_stride) & ((16u >> shift) - 1);
    vectors = odd == 0 && columns >= kSubTileWeights;
  }
};

// A row of a staging buffer has 64 or 128 bytes. The 2-byte stores of 32 lanes hit 16 banks, two
// lanes per word; 4-byte stores hit every bank once.
template <uint32_t kFirst, uint32_t kCount, uint32_t kRows>
__device__ void put_words(const float (&x)[kRows], uint32_t staging, uint32_t lane) {
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    ptx::st_shared_f32(staging + i * kSubTileWeights * 4 + lane * 4, x[kFirst + i]);
  }
}

template <uint32_t kRows>
__device__ void put_rows(const float (&x)[kRows], uint32_t type, uint32_t staging, uint32_t lane) {
  if (type == kTypeF32) return put_words<0, kRows>(x, staging, lane);
  const auto put = [&](auto pack) {
#pragma unroll
    for (uint32_t i = 0; i < kRows; i += 2) {
      const uint32_t two = pack(x[i + 1], x[i]), at = staging + i * kSubTileWeights * 2 + lane * 2;
      ptx::st_shared_b16(at, static_cast<uint16_t>(two));
      ptx::st_shared_b16(at + kSubTileWeights * 2, static_cast<uint16_t>(two >> 16));
    }
  };
  if (type == kTypeBf16) {
    put([](float high, float low) { return ptx::cvt_rn_bf16x2_f32(high, low); });
  } else {
    put([](float high, float low) { return ptx::cvt_rn_f16x2_f32(high, low); });
  }
}

// Stores the rows of D from m on in 16-byte vectors. The loads of 8 lanes hit every bank once.
template <uint32_t kRows, uint32_t kLanesPerRow>
__device__ void store_vectors(const Rows& to, uint32_t m, uint32_t staging, uint32_t lane) {
  constexpr uint32_t kAtOnce = 32 / kLanesPerRow;
  const uint32_t row = lane / kLanesPerRow, byte = lane % kLanesPerRow * 16;
#pragma unroll
  for (uint32_t i = 0; i < kRows; i += kAtOnce) {
    const uint4 piece = ptx::ld_shared_v4_b32(staging + (i + row) * kLanesPerRow * 16 + byte);
    if (m + i + row < to.m_end) {
      *reinterpret_cast<uint4*>(to.d + (m + i + row) * to.row_bytes + byte) = piece;
    }
  }
}

// Stores element by element, for tails and odd leading dimensions. Neighbouring lanes store
// neighbouring elements.
template <uint32_t kRows>
__device__ void store_scalars(const Rows& to, uint32_t m, uint32_t staging, uint32_t lane) {
  if (lane >= to.columns) return;
#pragma unroll 4
  for (uint32_t i = 0; i < kRows; ++i) {
    if (m + i >= to.m_end) return;
    uint8_t* row = to.d + (m + i) * to.row_bytes;
    if (to.type == kTypeF32) {
      reinterpret_cast<uint32_t*>(row)[lane] = ptx::ld_shared_b32(staging + i * 128 + lane * 4);
    } else {
      reinterpret_cast<uint16_t*>(row)[lane] =
          static_cast<uint16_t>(ptx::ld_shared_u16(staging + i * 64 + lane * 2));
    }
  }
}

// Stores the rows from m on, which the warp has put to the buffer.
template <uint32_t kRows>
__device__ void store_staged(const Rows& to, uint32_t m, uint32_t staging, uint32_t lane) {
  if (!to.vectors) {
    store_scalars<kRows>(to, m, staging, lane);
  } else if (to.type == kTypeF32) {
    store_vectors<kRows, 8>(to, m, staging, lane);
  } else {
    store_vectors<kRows, 4>(to, m, staging, lane);
  }
  __syncwarp();  // the next rows overwrite the buffer
}

// Stores the rows from m on with the warp's threads, without TMA.
template <uint32_t kRows>
__device__ void store_rows(const float (&x)[kRows], const Rows& to, uint32_t m, uint32_t staging,
                           uint32_t lane) {
  put_rows(x, to.type, staging, lane);
  __syncwarp();
  store_staged<kRows>(to, m, staging, lane);
}

// Stores a sub-tile by TMA. If a box has room for 2-byte elements only, a sub-tile of 4-byte
// elements takes two boxes.
template <typename Tile>
__device__ void send_rows(const float (&x)[kSubTileTokens], uint32_t type, uint32_t piece,
                          uint32_t m, const Boxes<Tile, false>& boxes) {
  constexpr uint32_t kHalf = kHalfBoxRows;
  boxes.make_room();
  if (Tile::kSeveralTiles && type == kTypeF32) {
    put_words<0, kHalf>(x, boxes.buffers.box(2 * piece), boxes.lane);
    boxes.send(2 * piece, m);
    boxes.make_room();
    put_words<kHalf, kHalf>(x, boxes.buffers.box(2 * piece + 1), boxes.lane);
    boxes.send(2 * piece + 1, m + kHalf);
    return;
  }
  put_rows(x, type, boxes.buffers.box(piece), boxes.lane);
  boxes.send(piece, m);
}

// Order in which a warp reads the sub-tiles of an accumulator. If accumulators overlap, the last
// columns of the first are the first columns of the second, and the warp begins with these.
template <typename Tile>
struct Order {
  uint32_t pieces, accumulator;

  __device__ uint32_t at(uint32_t i) const {
    return Tile::kOverlap && accumulator == 0 ? pieces - 1 - i : i;
  }
  // Number of sub-tiles after which a later tile may overwrite the accumulator, or the part of it
  // that both share.
  __device__ uint32_t until_release() const {
    if constexpr (!Tile::kOverlap) return pieces;
    constexpr uint32_t kFirst = Tile::kSecondAt / kSubTileTokens;
    constexpr uint32_t kShared = Tile::kTokens - Tile::kSecondAt;
    constexpr uint32_t kLast = (kShared + kSubTileTokens - 1) / kSubTileTokens;
    if (accumulator != 0) return min(pieces, kLast);
    return pieces > kFirst ? pieces - kFirst : 1;
  }
};

// One warp drains its 32 lanes of an accumulator, for the rows from m_first on: every other
// sub-tile, from the one of number `half` on. `tmem` is the first column and the warp's first lane.
// `release` is called once, when the warp has read everything that it needs, or, if accumulators
// overlap, everything that they share.
template <typename Tile, typename Release>
__device__ void drain(const LaneColumn& column, const Rows& to, uint32_t m_first, uint32_t tmem,
                      const Boxes<Tile, false>& boxes, uint32_t half, uint32_t accumulator,
                      Release release) {
  const uint32_t rows = min(to.m_end - m_first, Tile::kTokens);
  const uint32_t pieces = (rows + kSubTileTokens - 1) / kSubTileTokens;
  const Order<Tile> order{pieces, accumulator};
  const uint32_t until = order.until_release();
  if (half >= until) release();
#pragma unroll 1
  for (uint32_t i = half; i < pieces; i += Tile::kHalves) {
    const uint32_t piece = order.at(i), m = m_first + piece * kSubTileTokens;
    uint32_t sums[kSubTileTokens];
    ptx::tcgen05_ld_32x32b(sums, tmem + piece * kSubTileTokens);
    if (i < until && i + Tile::kHalves >= until) release();
    if (column.row_scales) {
      scale_by_rows(boxes.p, column.factors, boxes.batch, m, boxes.lane, sums);
    }
    float x[kSubTileTokens];
#pragma unroll
    for (uint32_t j = 0; j < kSubTileTokens; ++j) x[j] = column.finish(__uint_as_float(sums[j]));
    if (boxes.used()) {
      send_rows(x, to.type, i / Tile::kHalves, m, boxes);     // boxes in the order of their stores
    } else if (Tile::kSeveralTiles && to.type == kTypeF32) {  // a box has room for half of them
#pragma unroll
      for (uint32_t row = 0; row < kSubTileTokens; row += kHalfRows) {
        store_rows(*reinterpret_cast<const float(*)[kHalfRows]>(&x[row]), to, m + row,
                   boxes.buffers.box(0), boxes.lane);
      }
    } else {
      store_rows(x, to, m, boxes.buffers.box(0), boxes.lane);
    }
  }
}

}  // namespace nvfp4
