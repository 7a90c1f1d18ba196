// SPDX-License-Identifier: MIT
// From sums to D, or to the workspace if K is partitioned. The partitions of a tile are added first
// to last by a kernel of their own, so the bits do not depend on which CTA ends first.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm120/cta.cuh"
#include "kernel/sm120/multiply.cuh"

namespace nvfp4 {

// Writes a warp's sums over the drained ring, [token][weight] in fp32.
template <typename Tile>
__device__ void put_sums(const Sm120Cta<Tile>& cta, const Sm120Sums<Tile>& sums, uint32_t warp,
                         uint32_t lane) {
  const uint32_t w = warp % Tile::kWarpsW, v = warp / Tile::kWarpsW;
  const uint32_t own =
      cta.smem + (8 * v + lane % 4 * 2) * Tile::kSumRowBytes + (16 * w + lane / 4) * 4;
#pragma unroll
  for (uint32_t i = 0; i < Tile::kMmaRows; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < Tile::kMmaColumns; ++j) {
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t token = 8 * Tile::kWarpsT * j + e % 2;
        const uint32_t weight = 16 * Tile::kWarpsW * i + e / 2 * 8;
        ptx::st_shared_f32(own + token * Tile::kSumRowBytes + weight * 4, sums.of[i][j][e]);
      }
    }
  }
}

// Elements of a row of a K partition's sums in the workspace.
__device__ inline uint64_t row_of_partitions(const Sm120Params& p) { return (p.n + 3) & ~3u; }

// The sums of four neighbouring columns in the workspace.
__device__ inline float4* partition_at(const Sm120Params& p, uint32_t rank, uint32_t batch,
                                       uint32_t m, uint32_t n) {
  const uint64_t row = (static_cast<uint64_t>(rank) * p.batches + batch) * p.m + m;
  return reinterpret_cast<float4*>(p.partitions + row * row_of_partitions(p) + n);
}

// Row-major D in fp16 or bf16, alpha times the sum, if all four elements exist and are aligned.
__device__ inline bool is_plain(const Sm120Params& p, uint32_t n) {
  const uint32_t kind = p.epilogue.kind;
  return (kind == kEpiloguePlain || kind == kEpilogueBf16) && n + 4 <= p.n &&
         ((p.epilogue.d_row | p.d_batch_stride) & 3) == 0;
}
__device__ inline void store_plain(const Sm120Params& p, const SumRows& rows) {
  uint16_t* const d = static_cast<uint16_t*>(p.d) + rows.batch * p.d_batch_stride + rows.n;
  for (uint32_t m = rows.m, at = rows.at; m < rows.m_end; m += rows.m_step, at += rows.step) {
    const float4 sum = ptx::ld_shared_v4_f32(at);
    const float x[4] = {__fmul_rn(p.alpha, sum.x), __fmul_rn(p.alpha, sum.y),
                        __fmul_rn(p.alpha, sum.z), __fmul_rn(p.alpha, sum.w)};
    *reinterpret_cast<uint2*>(d + m * p.epilogue.d_row) = narrow_four(p.epilogue.d_type, x);
  }
}

__device__ inline void store_d(const Sm120Params& p, const SumRows& rows) {
  if (is_plain(p, rows.n)) return store_plain(p, rows);
  store_general(p, rows, GeneralColumns(p, p.alpha, rows.n), 1.0f);
}

// What a consumer thread stores of the tile: four neighbouring columns of every n-th row.
template <typename Tile>
__device__ SumRows rows_of_thread(const Sm120Cta<Tile>& cta) {
  constexpr uint32_t kColumns = Tile::kWeights / 4, kStep = Tile::kConsumers / kColumns;
  const uint32_t column = threadIdx.x % kColumns * 4, row = threadIdx.x / kColumns;
  SumRows rows;
  rows.at = cta.smem + row * Tile::kSumRowBytes + column * 4;
  rows.step = kStep * Tile::kSumRowBytes;
  rows.batch = cta.batch;
  rows.n = cta.n + column;
  rows.m = cta.m + row;
  rows.m_step = kStep;
  rows.m_end = min(cta.p.m, cta.m + Tile::kTokens);
  return rows;
}

template <typename Tile>
__device__ void store_partition(const Sm120Cta<Tile>& cta, const SumRows& rows) {
  if (rows.n >= cta.p.n) return;
  for (uint32_t m = rows.m, at = rows.at; m < rows.m_end; m += rows.m_step, at += rows.step) {
    *partition_at(cta.p, cta.rank, rows.batch, m, rows.n) = ptx::ld_shared_v4_f32(at);
  }
}

__device__ inline float4 add_four(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// Adds the K partitions of a row's four columns, first to last, and stores its part of D. `at` is
// the thread's own place in shared memory.
__device__ inline void add_partitions(const Sm120Params& p, uint32_t at) {
  const uint32_t columns = (p.n + kSm120AddColumns - 1) / kSm120AddColumns;
  const uint32_t block = blockIdx.x / columns;
  const uint32_t of_batch = (p.m + kSm120AddRows - 1) / kSm120AddRows;
  SumRows rows;
  rows.at = at;
  rows.batch = block / of_batch;
  rows.n = (blockIdx.x - block * columns) * kSm120AddColumns + threadIdx.x % 32 * 4;
  rows.m = (block - rows.batch * of_batch) * kSm120AddRows + threadIdx.x / 32;
  rows.m_end = min(p.m, rows.m + 1);
  if (rows.m < p.m && rows.n < p.n) {
    float4 sum = *partition_at(p, 0, rows.batch, rows.m, rows.n);
    for (uint32_t rank = 1; rank < p.split; ++rank) {
      sum = add_four(sum, *partition_at(p, rank, rows.batch, rows.m, rows.n));
    }
    ptx::st_shared_v4_f32(at, sum);
  }
  store_d(p, rows);
}

}  // namespace nvfp4
