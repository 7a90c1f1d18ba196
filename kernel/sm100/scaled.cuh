// SPDX-License-Identifier: MIT
// The epilogue for D in E2M1 with generated scales, if D depends only on the sum and its column. A
// warp transposes its 32 x 32 sub-tile in shared memory. Then each lane has a row: two blocks of 16
// columns, or one of 32. So lanes need not exchange values.
#pragma once

#include <cstdint>

#include "kernel/common/scaled_d.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/boxes.cuh"
#include "kernel/sm100/epilogue.cuh"

namespace nvfp4 {

// Offset of a lane's value in a row. The 16-byte pieces of a row are permuted by XOR with row % 8,
// so that the loads of a quarter warp, each lane its own row, hit every bank once.
__device__ inline uint32_t rotated(uint32_t row, uint32_t lane) {
  return row * kSumRowBytes + (lane / 4 ^ row % 8) * 16 + lane % 4 * 4;
}

// Loads 16 columns of a row of a sub-tile, from 16 * half on.
__device__ inline void load_half(uint32_t at, uint32_t row, uint32_t half, float (&x)[kBlock]) {
#pragma unroll
  for (uint32_t i = 0; i < kBlock / 4; ++i) {
    const uint32_t piece = half * (kBlock / 4) + i;
    const float4 four = ptx::ld_shared_v4_f32(at + row * kSumRowBytes + (piece ^ row % 8) * 16);
    x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
  }
}

// Branches once for all elements, not once for each.
__device__ inline void divide(const ScaleOfD& s, float (&x)[kBlock]) {
  if (s.by_quotients) {
#pragma unroll
    for (float& one : x) one = quotient(one, s.step, s.reciprocal);
  } else {
#pragma unroll
    for (float& one : x) one = divided(one, s);
  }
}

// Stores the rows from m on, up to m_end, of a warp's columns. The buffer at `at` holds them as
// turned() says.
__device__ inline void store_scaled_rows(const Sm100Params& p, uint32_t batch, uint32_t n_first,
                                         uint32_t m, uint32_t m_end, uint32_t at, uint32_t lane) {
  const EpilogueParams& e = p.epilogue;
  if (m + lane >= m_end) return;
  const TensorScale t = tensor_scale_of_d(e);
  uint8_t* const d =
      static_cast<uint8_t*>(p.d) + (batch * p.d_batch_stride + (m + lane) * p.d_ld + n_first) / 2;
  const bool is_wide = e.d_type == kTypeMxfp4;
#pragma unroll 1
  for (uint32_t half = 0; half < 2 && n_first + half * kBlock < p.n; ++half) {
    float x[kBlock], other[kBlock];
    load_half(at, lane, half, x);
    float largest = largest_magnitude(x);
    if (is_wide) {
      load_half(at, lane, half ^ 1, other);
      largest = max_nan(largest, largest_magnitude(other));
    }
    const ScaleOfD s = scale_of_d(e, largest, t);
    divide(s, x);
    uint2 codes = make_uint2(eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[0])),
                             eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[8])));
    if (s.zeros) codes = make_uint2(0, 0);
    *reinterpret_cast<uint2*>(d + half * (kBlock / 2)) = codes;
    if (!is_wide || half == 0) store_scale_of_d(e, batch, m + lane, n_first + half * kBlock, s);
  }
}

// Differs from drain() of epilogue.cuh in what it does with a sub-tile.
template <typename Tile>
__device__ void drain_scaled(const LaneColumn& column, uint32_t first_m, uint32_t tmem,
                             const Boxes<Tile, true>& boxes) {
  const Sm100Params& p = boxes.p;
  const uint32_t lane = boxes.lane, staging = boxes.buffers.sums();
#pragma unroll 1
  for (uint32_t piece = 0; piece < StagingBuffers<Tile, true>::kPieces; ++piece) {
    const uint32_t m = first_m + piece * kSubTileTokens;
    if (m >= p.m) break;
    uint32_t sums[kSubTileTokens];
    ptx::tcgen05_ld_32x32b(sums, tmem + piece * kSubTileTokens);
    if (column.row_scales) scale_by_rows(p, column.factors, boxes.batch, m, lane, sums);
#pragma unroll
    for (uint32_t i = 0; i < kSubTileTokens; ++i) {
      ptx::st_shared_f32(staging + rotated(i, lane), column.finish(__uint_as_float(sums[i])));
    }
    __syncwarp();
    store_scaled_rows(p, boxes.batch, boxes.n_first, m, p.m, staging, lane);
    __syncwarp();  // the next piece overwrites the sums
  }
}

}  // namespace nvfp4
