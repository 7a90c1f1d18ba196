// SPDX-License-Identifier: MIT
// From sums to D. The partial sums of the warps are added first to last, then those of the K
// partitions, first to last. The order is the same in every CTA.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/common/gated.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm80/cta.cuh"
#include "kernel/sm80/decode.cuh"
#include "kernel/sm80/multiply.cuh"

namespace nvfp4 {

__device__ inline float4 add_80(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// A row with a NaN among its scales is NaN for all tokens; its four lanes exchange that
// information.
template <typename Tile>
__device__ void apply_nan_rows(Sm80Sums<Tile>& sums) {
  uint32_t rows = sums.nan_rows;
  rows |= __shfl_xor_sync(0xFFFFFFFF, rows, 1);
  rows |= __shfl_xor_sync(0xFFFFFFFF, rows, 2);
  if (rows == 0) return;
#pragma unroll
  for (uint32_t t = 0; t < kSm80MmaRows; ++t) {
#pragma unroll
    for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        if ((rows >> (2 * t + i / 2) & 1) != 0) sums.of[t][u][i] = __uint_as_float(0x7FFFFFFF);
      }
    }
  }
}

// Writes the sums to the warp's own ring, [token][weight] in fp32.
template <typename Tile>
__device__ void put_sums_80(const Sm80Sums<Tile>& sums, uint32_t ring, uint32_t lane) {
  const uint32_t own = ring + lane % 4 * 2 * kSm80SumRowBytes + lane / 4 * 4;
#pragma unroll
  for (uint32_t t = 0; t < kSm80MmaRows; ++t) {
#pragma unroll
    for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        ptx::st_shared_f32(own + (8 * u + i % 2) * kSm80SumRowBytes + (16 * t + i / 2 * 8) * 4,
                           sums.of[t][u][i]);
      }
    }
  }
}

// A thread takes four neighbouring columns of D, of every eighth token, in every step below alike:
// so it reads nothing that another thread wrote, except the warps' partial sums. In gated tiles of
// 32 columns it takes every 16th token.
constexpr uint32_t kSm80HalfSumBytes = kSm80HalfWeights * 4;  // from the sums of b to those of b2

template <typename Tile>
struct Sm80ThreadSums {
  uint32_t n, token, step;

  __device__ explicit Sm80ThreadSums(uint32_t columns = kSm80Weights)
      : n(threadIdx.x % (columns / 4) * 4),
        token(threadIdx.x / (columns / 4)),
        step(Tile::kThreads / (columns / 4)) {}
  __device__ uint32_t place(uint32_t t) const { return t * kSm80SumRowBytes + n * 4; }
};

// Adds the warps' partial sums of four sums of a token, first to last.
template <typename Tile>
__device__ float4 sum_of_warps(const Sm80Cta<Tile>& cta, uint32_t place) {
  float4 sum = ptx::ld_shared_v4_f32(cta.ring(0) + place);
#pragma unroll
  for (uint32_t warp = 1; warp < Tile::kWarps; ++warp) {
    sum = add_80(sum, ptx::ld_shared_v4_f32(cta.ring(warp) + place));
  }
  return sum;
}

// Adds the warps' partial sums that are `from` bytes behind a thread's, in place.
template <typename Tile>
__device__ void add_warps(const Sm80Cta<Tile>& cta, const Sm80ThreadSums<Tile>& its,
                          uint32_t from) {
  for (uint32_t t = its.token; t < cta.tokens; t += its.step) {
    const uint32_t place = its.place(t) + from;
    ptx::st_shared_v4_f32(cta.ring(0) + place, sum_of_warps(cta, place));
  }
}

// The partial sums of a cluster meet in its first CTA. The barrier of that CTA counts their bytes,
// so no CTA waits for a fence. If they meet in its rings, the first CTA arrives when its warps have
// read the rings. The thread that initialises the barrier arrives after a barrier of the CTA,
// because ptxas initialises with an instruction of the whole warp, which racecheck takes for
// another thread's write.
template <typename Tile>
__device__ void start_cluster(const Sm80Cta<Tile>& cta) {
  if (cta.rank == 0 && threadIdx.x == 0) {
    ptx::mbarrier_init(cta.sums_full(), 1);
    ptx::fence_mbarrier_init();
  }
  if (!Tile::kPartitionsInRings || cta.rank != 0) ptx::cluster_arrive_relaxed();
}

template <typename Tile>
__device__ void push_partition(const Sm80Cta<Tile>& cta, const Sm80ThreadSums<Tile>& its) {
  if (Tile::kPartitionsInRings && cta.rank == 0) ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();  // the first CTA's barrier is initialised, and its memory is free
  const uint32_t full = ptx::mapa(cta.sums_full(), 0);
  for (uint32_t t = its.token; t < cta.tokens; t += its.step) {
    const uint32_t to = ptx::mapa(cta.partitions(cta.rank) + its.place(t), 0);
    ptx::st_async_v4_f32(to, sum_of_warps(cta, its.place(t)), full);
  }
}

// The first CTA adds the other partial sums to its own, in place.
template <typename Tile>
__device__ void add_cluster(const Sm80Cta<Tile>& cta, const Sm80ThreadSums<Tile>& its) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(cta.sums_full(), cta.p.split * cta.tokens * kSm80Weights * 4);
  }
  ptx::mbarrier_wait_cluster(cta.sums_full(), 0);
  for (uint32_t t = its.token; t < cta.tokens; t += its.step) {
    const uint32_t own = cta.partitions(0) + its.place(t);
    float4 sum = ptx::ld_shared_v4_f32(own);
    for (uint32_t rank = 1; rank < cta.p.split; ++rank) {
      sum = add_80(sum, ptx::ld_shared_v4_f32(cta.partitions(rank) + its.place(t)));
    }
    ptx::st_shared_v4_f32(own, sum);
  }
}

// The place of a K partition's sums in the workspace.
template <typename Tile>
__device__ float4* partition_at(const Sm80Params& p, uint32_t tile, uint32_t rank, uint32_t token,
                                uint32_t n) {
  const uint64_t partition = static_cast<uint64_t>(tile) * p.split + rank;
  return reinterpret_cast<float4*>(p.partitions +
                                   (partition * Tile::kTokens + token) * kSm80Weights + n);
}

template <typename Tile>
__device__ void store_partition(const Sm80Cta<Tile>& cta, const Sm80ThreadSums<Tile>& its) {
  for (uint32_t t = its.token; t < cta.tokens; t += its.step) {
    *partition_at<Tile>(cta.p, cta.tile, cta.rank, t, its.n) = sum_of_warps(cta, its.place(t));
  }
}

__device__ inline float unit_80(const Sm80Params& p) {
  return kSm80TakesUe8m0 && p.log2_of_ue8m0 != 0 ? kSm80Ue8m0Unit : kSm80Ue4m3Unit;
}

// Stores row-major D in fp16, bf16 or fp32, alpha times the sum, if all four elements exist and are
// aligned.
template <typename Tile>
__device__ void store_plain_80(const Sm80Params& p, float alpha, const SumRows& rows) {
  const uint32_t type = p.epilogue.d_type;
  const int64_t first = rows.batch * p.d_batch_stride + rows.n;
  const float unit = unit_80(p);
  for (uint32_t m = rows.m, at = rows.at; m < rows.m_end; m += rows.m_step, at += rows.step) {
    const float4 sum = ptx::ld_shared_v4_f32(at);
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (float& one : x) one = __fmul_rn(alpha, __fmul_rn(one, unit));
    if (type == kTypeF32) {
      float* const d = static_cast<float*>(p.d) + first + m * p.epilogue.d_row;
      *reinterpret_cast<float4*>(d) = make_float4(x[0], x[1], x[2], x[3]);
      continue;
    }
    uint16_t* const d = static_cast<uint16_t*>(p.d) + first + m * p.epilogue.d_row;
    *reinterpret_cast<uint2*>(d) = narrow_four(type, x);
  }
}

__device__ inline bool is_plain_80(const Sm80Params& p, uint32_t n) {
  const EpilogueParams& e = p.epilogue;
  const bool bare = e.alpha_device == nullptr && e.a_tensor_scale == nullptr &&
                    e.b_tensor_scale == nullptr && e.bias_type == kTypeNone;
  return (e.kind <= kEpilogueBf16 || (e.kind == kEpilogueF32 && bare)) && n + 4 <= p.n &&
         ((e.d_row | p.d_batch_stride) & 3) == 0;
}

// Where a thread's sums are in D. All groups share one D.
template <typename Tile>
__device__ SumRows sum_rows_80(const Sm80Place& at, uint32_t sums,
                               const Sm80ThreadSums<Tile>& its) {
  SumRows rows;
  rows.at = sums + its.place(its.token);
  rows.step = its.step * kSm80SumRowBytes;
  rows.batch = Tile::kGrouped ? 0 : at.batch;
  rows.n = at.n + its.n;
  rows.m = at.m + its.token;
  rows.m_step = its.step;
  rows.m_end = min(at.m_end, at.m + Tile::kTokens);
  return rows;
}

// The host's factors, or those of a group, the element at which its biases begin, and what it has
// of a D with scales.
template <typename Tile>
__device__ GateAlphas alphas_80(const Sm80Params& p, const Sm80Place& at) {
  if constexpr (!Tile::kGrouped) return {p.alpha, 1};
  const Sm80GroupedParams& grouped = grouped_params(p);
  const bool tiles = p.epilogue.d_scales_are_tiles != 0;
  return {alpha_of_group(grouped.groups.alpha, at.batch, p.alpha),
          alpha_of_group(grouped.groups.alpha2, at.batch, grouped.gate.alpha2),
          bias_of_group(grouped.groups, at.batch),
          {tiles ? at.scale_row - at.m : 0, d_tensor_scale_of_group(grouped.groups, at.batch)}};
}

// Computes D from the sums at `sums`, [token][weight].
template <typename Tile>
__device__ void store_d_80(const Sm80Params& p, const Sm80Place& at, uint32_t sums,
                           const Sm80ThreadSums<Tile>& its) {
  const SumRows rows = sum_rows_80(at, sums, its);
  const GateAlphas alphas = alphas_80<Tile>(p, at);
  if (is_plain_80(p, rows.n)) {
    return store_plain_80<Tile>(p, alphas.of_b, rows);
  }
  GeneralColumns columns(p, alphas.of_b, rows.n, alphas.bias_first);
  columns.d_scales = alphas.d_scales;
  store_general(p, rows, columns, unit_80(p));
}

template <typename Tile>
__device__ void store_gated_80(const Sm80Cta<Tile>& cta, const Sm80ThreadSums<Tile>& its) {
  const Sm80Params& p = cta.p;
  store_gated(p, grouped_params(p).gate, alphas_80<Tile>(p, cta.at),
              sum_rows_80(cta.at, cta.ring(0), its), kSm80HalfSumBytes, unit_80(p));
}

}  // namespace nvfp4
