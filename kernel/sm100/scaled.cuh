// SPDX-License-Identifier: MIT
// The epilogue for D in E2M1 with generated scales, if D depends only on the sum and its column. A
// warp transposes half a sub-tile, 16 x 32, in shared memory. Then each lane has 16 columns of a
// row. If a block has 32 columns, each lane also looks at the other 16. So lanes need not exchange
// values.
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

// Loads 16 columns of a row, from 16 * block on.
__device__ inline void load_block(uint32_t at, uint32_t row, uint32_t block, float (&x)[kBlock]) {
#pragma unroll
  for (uint32_t i = 0; i < kBlock / 4; ++i) {
    const uint32_t piece = block * (kBlock / 4) + i;
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

// Stores up to 16 rows from m on, below m_end, of a warp's columns. The buffer at `at` holds them
// as turned() says.
__device__ inline void store_scaled_rows(const Sm100Params& p, uint32_t batch, uint32_t n_first,
                                         uint32_t m, uint32_t m_end, uint32_t at, uint32_t lane) {
  const EpilogueParams& e = p.epilogue;
  const uint32_t row = lane % kHalfRows, block = lane / kHalfRows, n = n_first + block * kBlock;
  m += row;
  if (m >= m_end || n >= p.n) return;
  const TensorScale t = tensor_scale_of_d(e);
  const bool is_wide = e.d_type == kTypeMxfp4;
  float x[kBlock];
  load_block(at, row, block, x);
  float largest = largest_magnitude(x);
  if (is_wide) {
    float other[kBlock];
    load_block(at, row, block ^ 1, other);
    largest = max_nan(largest, largest_magnitude(other));
  }
  const ScaleOfD s = scale_of_d(e, largest, t);
  divide(s, x);
  uint2 codes = make_uint2(eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[0])),
                           eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[8])));
  if (s.zeros) codes = make_uint2(0, 0);
  uint8_t* const d = static_cast<uint8_t*>(p.d) + (batch * p.d_batch_stride + m * p.d_ld + n) / 2;
  *reinterpret_cast<uint2*>(d) = codes;
  if (!is_wide || block == 0) store_scale_of_d(e, batch, m, n, s);
}

// Differs from drain() of epilogue.cuh in what it does with half a sub-tile.
template <typename Tile>
__device__ void drain_scaled(const LaneColumn& column, uint32_t first_m, uint32_t tmem,
                             const Boxes<Tile, true>& boxes, uint32_t half) {
  const Sm100Params& p = boxes.p;
  const uint32_t lane = boxes.lane, staging = boxes.buffers.sums();
#pragma unroll 1
  for (uint32_t i = 0; i < StagingBuffers<Tile, true>::kPieces; ++i) {
    const uint32_t first = (i * Tile::kHalves + half) * kHalfRows, m = first_m + first;
    if (m >= p.m) break;
    uint32_t sums[kHalfRows];
    ptx::tcgen05_ld_32x32b(sums, tmem + first);
    if (column.row_scales) scale_by_rows(p, column.factors, boxes.batch, m, lane, sums);
#pragma unroll
    for (uint32_t j = 0; j < kHalfRows; ++j) {
      ptx::st_shared_f32(staging + rotated(j, lane), column.finish(__uint_as_float(sums[j])));
    }
    __syncwarp();
    store_scaled_rows(p, boxes.batch, boxes.n_first, m, p.m, staging, lane);
    __syncwarp();  // the next half overwrites the sums
  }
}

}  // namespace nvfp4
