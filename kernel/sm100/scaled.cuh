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

// Stores the codes of 16 columns, byte by byte unless they begin at a multiple of 8 bytes.
__device__ inline void put_block(uint8_t* d, uint2 codes, bool aligned) {
  if (aligned) {
    *reinterpret_cast<uint2*>(d) = codes;
    return;
  }
#pragma unroll 1
  for (uint32_t i = 0; i < 8; ++i) {
    d[i] = static_cast<uint8_t>(codes.x);
    codes = make_uint2(__funnelshift_r(codes.x, codes.y, 8), codes.y >> 8);
  }
}

// Where a lane's block of 16 columns goes, the same for all of its rows.
struct LaneBlock {
  uint32_t batch, n, row, block;  // of 16 rows and two blocks of the warp's columns
  uint32_t shift;                 // from a row of D to its row of scales in 128x4 tiles
  uint8_t* d = nullptr;           // of row 0; none: the columns do not exist
  int64_t row_bytes;
  TensorScale t;

  __device__ LaneBlock(const Sm100Params& p, uint32_t its_batch, uint32_t n_first, uint32_t lane,
                       const ScalesOfGroup& group = {})
      : batch(its_batch), row(lane % kHalfRows), block(lane / kHalfRows), shift(group.shift) {
    n = n_first + block * kBlock;
    row_bytes = p.d_ld / 2;
    t = tensor_scale_of_d(p.epilogue, group.tensor_scale);
    if (n < p.n) d = static_cast<uint8_t*>(p.d) + (batch * p.d_batch_stride + n) / 2;
  }
  __device__ static bool is_aligned(const Sm100Params& p) {
    return ((p.d_ld | p.d_batch_stride) & (kBlock - 1)) == 0;
  }
};

// Stores up to 16 rows from m on, below m_end, of a warp's columns. The buffer at `at` holds them
// as rotated() says.
__device__ inline void store_scaled_rows(const EpilogueParams& e, const LaneBlock& its, uint32_t m,
                                         uint32_t m_end, uint32_t at, bool is_wide,
                                         bool is_aligned) {
  m += its.row;
  if (m >= m_end || its.d == nullptr) return;
  float x[kBlock];
  load_block(at, its.row, its.block, x);
  float largest = largest_magnitude(x);
  if (is_wide) {
    float other[kBlock];
    load_block(at, its.row, its.block ^ 1, other);
    largest = max_nan(largest, largest_magnitude(other));
  }
  const ScaleOfD s = scale_of_d(e, largest, its.t);
  divide(s, x);
  uint2 codes = make_uint2(eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[0])),
                           eight_e2m1(*reinterpret_cast<const float(*)[8]>(&x[8])));
  if (s.zeros) codes = make_uint2(0, 0);
  put_block(its.d + m * its.row_bytes, codes, is_aligned);
  if (!is_wide || its.block == 0) store_scale_of_d(e, its.batch, m + its.shift, its.n, s);
}

// Puts a lane's rows where store_scaled_rows takes them.
__device__ inline void put_rotated(const float (&x)[kHalfRows], uint32_t staging, uint32_t lane) {
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; ++i) ptx::st_shared_f32(staging + rotated(i, lane), x[i]);
}

}  // namespace nvfp4
