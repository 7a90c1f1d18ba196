// SPDX-License-Identifier: MIT
// K = 0: the general epilogue with sums of +0. A warp takes 128 columns of a row, and every
// row_ctas-th four rows from there, in every batch of its CTA.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

__device__ inline void store_empty_sums(const EmptySumParams& p) {
  __shared__ float4 zeros;
  ptx::griddepcontrol_launch_dependents();
  if (threadIdx.x == 0) zeros = make_float4(0, 0, 0, 0);
  __syncthreads();
  const uint32_t n = blockIdx.x * kEmptySumColumns + threadIdx.x % 32 * 4;
  const uint32_t m = blockIdx.y % p.row_ctas * kEmptySumRows + threadIdx.x / 32;
  for (uint32_t batch = blockIdx.y / p.row_ctas; batch < p.batches; batch += p.batch_ctas) {
    const SumRows rows{ptx::shared_address(&zeros), 0,  batch, n, m,
                       p.row_ctas * kEmptySumRows,  p.m};
    store_general(p, rows, GeneralColumns(p, p.alpha, n), 1.0f);
  }
}

}  // namespace nvfp4
