// SPDX-License-Identifier: MIT
// Makes D of complete sums in the workspace. The kernel before has stored the sums
// (host/plan/apart.h). A CTA takes up to 32 rows of 128 columns.
//
// For any epilogue of a product that is not gated, it loads the sums to shared memory. If D is
// stored by rows, each thread reads back what it has put there itself. If D is stored by columns,
// the lanes of a warp take neighbouring rows. For the most frequent epilogues there are kernels
// that keep the sums in registers.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/common/finish.h"
#include "kernel/common/gated.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

constexpr uint32_t kFinishWarps = kFinishThreads / 32;
constexpr uint32_t kFinishRowsOfWarp = kFinishRows / kFinishWarps;
constexpr uint32_t kFinishRowBytes = (kFinishColumns + 4) * 4;  // no conflicts of banks

// Rows and columns of D that a CTA makes, from m and n on.
struct FinishTile {
  uint32_t batch, m, n;

  __device__ explicit FinishTile(const FinishParams& p) {
    const uint32_t across = (p.n + kFinishColumns - 1) / kFinishColumns;
    const uint32_t down = (p.m + p.rows - 1) / p.rows;
    const uint32_t row = blockIdx.x / across;
    n = (blockIdx.x - row * across) * kFinishColumns;
    batch = row / down;
    m = (row - batch * down) * p.rows;
  }
};

// Four neighbouring sums of a row, of which `count` exist; kWhole: four or none.
template <bool kWhole>
__device__ uint4 load_four_sums(const float* at, uint32_t count) {
  if constexpr (kWhole) return ptx::ld_global_v4_b32_halves(at, count > 0 ? 2 : 0);
  return make_uint4(ptx::ld_global_b32_if(at, count > 0), ptx::ld_global_b32_if(at + 1, count > 1),
                    ptx::ld_global_b32_if(at + 2, count > 2),
                    ptx::ld_global_b32_if(at + 3, count > 3));
}

// The sums of a thread for one matrix: four columns of a row in eight.
struct ThreadSums {
  uint4 four[kFinishRowsOfWarp];

  template <bool kWhole>
  __device__ void load_as(const FinishParams& p, const float* from, const FinishTile& tile,
                          uint32_t count) {
#pragma unroll
    for (uint32_t i = 0; i < kFinishRowsOfWarp; ++i) {
      const uint32_t m = tile.m + i * kFinishWarps + threadIdx.x / 32;
      four[i] = load_four_sums<kWhole>(from + m * p.sums_ld + tile.n + threadIdx.x % 32 * 4,
                                       m < p.m ? count : 0);
    }
  }
  __device__ void load(const FinishParams& p, const float* from, const FinishTile& tile) {
    const uint32_t n = tile.n + threadIdx.x % 32 * 4, count = n < p.n ? min(p.n - n, 4u) : 0;
    if (count % 4 == 0) {
      load_as<true>(p, from, tile, count);
    } else {
      load_as<false>(p, from, tile, count);
    }
  }
  __device__ void put(uint32_t to) const {
#pragma unroll
    for (uint32_t i = 0; i < kFinishRowsOfWarp; ++i) {
      const uint32_t row = i * kFinishWarps + threadIdx.x / 32;
      ptx::st_shared_v4_b32(to + row * kFinishRowBytes + threadIdx.x % 32 * 16, four[i]);
    }
  }
};

// Four columns of a thread, of some rows. A thread has several such pieces if D is by columns.
struct FinishPieces {
  SumRows rows;
  uint32_t count;

  __device__ FinishPieces(const FinishParams& p, const FinishTile& tile, uint32_t sums) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool by_rows = p.epilogue.d_column == 1;
    const uint32_t row = by_rows ? warp : lane, column = 4 * (by_rows ? lane : warp);
    rows.at = sums + row * kFinishRowBytes + column * 4;
    rows.step = kFinishWarps * kFinishRowBytes;
    rows.batch = tile.batch;
    rows.n = tile.n + column;
    rows.m = tile.m + row;
    rows.m_step = by_rows ? kFinishWarps : kFinishRows;
    rows.m_end = min(p.m, tile.m + p.rows);
    count = by_rows ? 1 : kFinishColumns / (4 * kFinishWarps);
  }
  __device__ void advance() {
    rows.at += 16 * kFinishWarps;
    rows.n += 4 * kFinishWarps;
  }
};

__device__ inline void finish(const FinishParams& p) {
  __shared__ __align__(16) uint8_t sums[kFinishRows * kFinishRowBytes];
  ptx::griddepcontrol_launch_dependents();
  const FinishTile tile(p);
  ptx::griddepcontrol_wait();
  const uint32_t at = ptx::shared_address(sums);
  ThreadSums own;
  own.load(p, p.sums + tile.batch * p.sums_batch_stride, tile);
  own.put(at);
  __syncthreads();
  FinishPieces pieces(p, tile, at);
#pragma unroll 1
  for (uint32_t i = 0; i < pieces.count; ++i, pieces.advance()) {
    store_general<kFinishRowsOfWarp>(p, pieces.rows, GeneralColumns(p, p.alpha, pieces.rows.n),
                                     1.0f);
  }
}

// ---- D by rows ----------------------------------------------------------------------------------

// A matrix of sums with what all rows share in a thread's four columns.
struct FinishColumns {
  const float* sums;  // of the thread's columns in row 0
  GatedColumns factors;
  float bias[4];

  __device__ FinishColumns(const FinishParams& p, const float* first,
                           const GatedColumns& of_columns, const void* biases, uint32_t n)
      : sums(first + n), factors(of_columns), bias{0, 0, 0, 0} {
    const EpilogueParams& e = p.epilogue;
    if (e.bias_type == kTypeNone) return;
    unpack_four(load_bits_of_four(biases, e.bias_type, n, 1, 4, false), e.bias_type, false, bias);
  }
  __device__ uint4 load(const FinishParams& p, uint32_t m) const {
    return ptx::ld_global_v4_b32_halves(sums + m * p.sums_ld, m < p.m ? 2 : 0);
  }
  // The values of row m that its sums give.
  __device__ void scale(const FinishParams& p, uint4 four, uint32_t batch, uint32_t m,
                        float* x) const {
    const EpilogueParams& e = p.epilogue;
    float factor = factors.of_row(1);
    if (e.a_scale_per_row != 0) {
      const uint32_t bits = ptx::ld_global_b32_if(row_scale_at(p, batch, m), m < p.m);
      factor = factors.of_row(__uint_as_float(bits));
    }
    const uint32_t sum[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) x[i] = __fmul_rn(factor, __uint_as_float(sum[i]));
    if (e.bias_type == kTypeNone) return;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) x[i] = __fadd_rn(x[i], bias[i]);
  }
};

__device__ inline void store_finished(const FinishParams& p, uint32_t batch, uint32_t m, uint32_t n,
                                      const float* four) {
  const EpilogueParams& e = p.epilogue;
  float x[4] = {four[0], four[1], four[2], four[3]};
  const int64_t at = batch * p.d_batch_stride + m * e.d_row + n;
  const bool vectors = ((e.d_row | p.d_batch_stride) & 3) == 0;
  if (has_scales(e.d_type)) return store_scaled_four(e, p.d, at, batch, m, n, vectors, x);
  store_four(p.d, e.d_type, at, 1, 4, vectors, x);
}

// The most frequent epilogues with few instructions: D is row-major without maxima, N a multiple of
// 4, a bias is by columns, and there is no C. A thread has four columns of two rows at a time.
template <bool kGated>
__device__ void finish_rows(const FinishParams& p) {
  constexpr uint32_t kRows = 2;
  ptx::griddepcontrol_launch_dependents();
  const FinishTile tile(p);
  const uint32_t n = tile.n + threadIdx.x % 32 * 4, end = min(p.m, tile.m + p.rows);
  ptx::griddepcontrol_wait();
  if (n >= p.n) return;
  const EpilogueParams& e = p.epilogue;
  const float* const first = p.sums + (kGated ? 0 : tile.batch * p.sums_batch_stride);
  const FinishColumns of_b(p, first, GatedColumns(p, p.alpha, e.alpha_device, e.b_tensor_scale, n),
                           e.bias, n);
  const GateParams& g = p.gate;
  const FinishColumns of_b2 =
      !kGated ? of_b
              : FinishColumns(p, first + p.sums_batch_stride,
                              GatedColumns(p, g.alpha2, g.alpha2_device, g.b2_tensor_scale, n),
                              g.bias2, n);
#pragma unroll 1
  for (uint32_t m = tile.m + threadIdx.x / 32; m < end; m += kRows * kFinishWarps) {
    uint4 sums[kRows], sums2[kRows];
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      sums[i] = of_b.load(p, m + i * kFinishWarps);
      if (kGated) sums2[i] = of_b2.load(p, m + i * kFinishWarps);
    }
    float x[4 * kRows], y[4 * kRows];
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      of_b.scale(p, sums[i], tile.batch, m + i * kFinishWarps, x + 4 * i);
      if (kGated) of_b2.scale(p, sums2[i], tile.batch, m + i * kFinishWarps, y + 4 * i);
    }
    if constexpr (kGated) {
      multiply_gated(e.activation, g, x, y);
    } else {
      activate(e.activation, x);
    }
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint32_t row = m + i * kFinishWarps;
      if (row < end) store_finished(p, tile.batch, row, n, x + 4 * i);
    }
  }
}

// silu(x) * y alone, D in 16 bits: code without branches. A kernel of few tokens fetches its code
// longer than it computes. The grid's rows are tiles of columns.
__device__ inline void finish_swiglu(const FinishParams& p) {
  constexpr uint32_t kRows = 2;
  ptx::griddepcontrol_launch_dependents();
  const EpilogueParams& e = p.epilogue;
  const uint32_t n = blockIdx.y * kFinishColumns + threadIdx.x % 32 * 4;
  uint32_t m = blockIdx.x * p.rows + threadIdx.x / 32;
  const uint32_t end = min(p.m, (blockIdx.x + 1) * p.rows);
  const float* const sums = p.sums + n;
  uint16_t* const d = static_cast<uint16_t*>(p.d) + n;
  ptx::griddepcontrol_wait();
  if (n >= p.n) return;
  const GateParams& g = p.gate;
  const float of_b = GatedColumns(p, p.alpha, e.alpha_device, e.b_tensor_scale, 0).of_row(1);
  const float of_b2 = GatedColumns(p, g.alpha2, g.alpha2_device, g.b2_tensor_scale, 0).of_row(1);
#pragma unroll 1
  for (; m < end; m += kRows * kFinishWarps) {
    float4 first[kRows], second[kRows];
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const float* const at = sums + min(m + i * kFinishWarps, end - 1) * p.sums_ld;
      first[i] = *reinterpret_cast<const float4*>(at);
      second[i] = *reinterpret_cast<const float4*>(at + p.sums_batch_stride);
    }
    float x[4 * kRows], y[4 * kRows];
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const float from[8] = {first[i].x,  first[i].y,  first[i].z,  first[i].w,
                             second[i].x, second[i].y, second[i].z, second[i].w};
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) {
        x[4 * i + j] = __fmul_rn(of_b, from[j]);
        y[4 * i + j] = __fmul_rn(of_b2, from[4 + j]);
      }
    }
    activate(kActivationSilu, x);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint32_t row = m + i * kFinishWarps;
      float four[4];
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) four[j] = __fmul_rn(x[4 * i + j], y[4 * i + j]);
      if (row < end) *reinterpret_cast<uint2*>(d + row * e.d_row) = narrow_four(e.d_type, four);
    }
  }
}

}  // namespace nvfp4
