// SPDX-License-Identifier: MIT
// The activation pre-pass of grouped products: it decodes the rows of groups alone, one after the
// other, into the workspace. Rows of no group, which may be most of those that exist, cost nothing.
#pragma once

#include <cstdint>

#include "kernel/common/groups.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/tokens_kernel.cuh"

namespace nvfp4 {

// Where the rows of groups are. A thread counts those of `each` neighbouring groups. The compiler
// loads `of_warps` in whole vectors, in which nothing lies that another thread writes.
struct GroupTokens {
  alignas(16) uint32_t of_warps[kTokenKernelThreads / 32];
  uint32_t first[kTokenKernelThreads + 1];  // rows of groups before a thread's groups, and all
};
static_assert(sizeof(GroupTokens::of_warps) % 16 == 0);
static_assert(sizeof(GroupTokens) <= kGroupTokensSharedBytes);

// Without a capacity the rows of groups are those up to the last end.
__device__ inline void find_last_end(const GroupParams& p, GroupTokens* shared) {
  uint32_t end = 0;
#pragma unroll 4
  for (uint32_t group = threadIdx.x; group < p.count; group += kTokenKernelThreads) {
    end = max(end, clamped_rows(p, group));
  }
  end = largest_up_to_lane(end);
  if (lane_number() == 31) shared->of_warps[threadIdx.x / 32] = end;
  __syncthreads();
  if (threadIdx.x != kTokenKernelThreads - 1) return;
#pragma unroll
  for (const uint32_t of_warp : shared->of_warps) end = max(end, of_warp);
  shared->first[kTokenKernelThreads] = end;
}

// With a capacity each group has its own number of rows.
__device__ inline void count_group_rows(const GroupParams& p, uint32_t each, GroupTokens* shared) {
  uint32_t rows = 0;
#pragma unroll 4
  for (uint32_t i = 0; i < each; ++i) rows += clamped_rows(p, threadIdx.x * each + i);
  const uint32_t up_to_lane = sum_up_to_lane(rows), warp = threadIdx.x / 32;
  if (lane_number() == 31) shared->of_warps[warp] = up_to_lane;
  __syncthreads();
  uint32_t before = up_to_lane - rows;
#pragma unroll
  for (uint32_t i = 0; i < kTokenKernelThreads / 32; ++i) {
    if (i < warp) before += shared->of_warps[i];
  }
  shared->first[threadIdx.x] = before;
  if (threadIdx.x == kTokenKernelThreads - 1) shared->first[kTokenKernelThreads] = before + rows;
}

// The row of A that is row `number` of all groups, which exists.
__device__ inline uint32_t find_group_row(const GroupParams& p, uint32_t each,
                                          const GroupTokens* shared, uint32_t number) {
  if (p.capacity == 0) return number;
  uint32_t thread = 0;
#pragma unroll
  for (uint32_t by = kTokenKernelThreads / 2; by > 0; by /= 2) {
    if (shared->first[thread + by] <= number) thread += by;
  }
  uint32_t group = thread * each, row = number - shared->first[thread];
  for (uint32_t rows; row >= (rows = clamped_rows(p, group)); ++group) row -= rows;
  return counted_rows(p, group, 0).begin + row;
}

// One thread decodes a piece of a row of all groups. The workspace has [k-block][row of all
// groups][4 x 64 elements], not swizzled, because the tiles of groups begin anywhere: TMA swizzles
// a tile's rows.
__device__ inline void decode_group_piece(const Sm90Params& p, uint32_t row, uint32_t number,
                                          bool there, uint32_t stage) {
  const uint32_t j = threadIdx.x % kPiecesPerStage;
  uint4 chunks[4];
  decode_token_piece(load_token_piece<true>(p, 0, row, stage, j), chunks);
  deal_out_chunks(j, chunks);
  if (!there) return;
  const uint64_t place = static_cast<uint64_t>(stage) * p.decoded_rows + number;
  uint8_t* out = static_cast<uint8_t*>(p.token_sub_tiles) +
                 (place * (kSm90StageK / kScaleTileK) + j / 2) * kTokenRowBytes;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    *reinterpret_cast<uint4*>(out + (2 * i + j % 2) * 16) = chunks[i];
  }
}

// As many CTAs as run at once. Each takes 16 rows of a k-block, then others. The GEMM decodes rows
// for which the workspace has no place (grouped.cuh). All 32 registers are needed for a piece, so
// the loop computes its numbers anew.
__device__ inline void decode_group_tokens(const Sm90Params& p, const GroupParams& groups) {
  ptx::griddepcontrol_launch_dependents();  // see decode_tokens_to_workspace
  __shared__ GroupTokens shared;
  const uint32_t each = (groups.count + kTokenKernelThreads - 1) / kTokenKernelThreads;
  if (groups.capacity == 0) {
    find_last_end(groups, &shared);
  } else {
    count_group_rows(groups, each, &shared);
  }
  __syncthreads();
  const uint32_t rows_at = ptx::shared_address(&shared.first[kTokenKernelThreads]);
  const uint32_t stages = (p.k + kSm90StageK - 1) / kSm90StageK;
#pragma unroll 1
  for (uint32_t piece = blockIdx.x;; piece += gridDim.x) {
    const uint32_t rows = min(ptx::ld_shared_b32(rows_at), p.decoded_rows);
    if (piece >= (rows + kTokenKernelRows - 1) / kTokenKernelRows * stages) return;
    const uint32_t of_rows = piece / stages;
    const uint32_t number = of_rows * kTokenKernelRows + threadIdx.x / kPiecesPerStage;
    const bool there = number < rows;
    const uint32_t row = there ? find_group_row(groups, each, &shared, number) : p.m;
    decode_group_piece(p, row, number, there, piece - of_rows * stages);
  }
}

}  // namespace nvfp4
