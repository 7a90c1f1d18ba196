// SPDX-License-Identifier: MIT
// K = 0: the general epilogue with sums of +0. A warp takes 128 columns of a row, and every
// row_ctas-th four rows from there, in every batch of its CTA. Rows of no group are not stored.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/common/scale_tile.h"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

// The rows of a group, and its first row of D's scales in 128x4 tiles.
struct EmptyGroup {
  uint32_t group, begin, end, scale_row;
};

// The group of a row; false if it belongs to none. It looks at the groups one after the other and
// clamps what the caller gave as groups.cuh does: nothing is multiplied, so this may take long.
__device__ inline bool group_of_row(const GroupParams& p, uint32_t row, EmptyGroup* found) {
  uint32_t end = 0, scale_row = 0;
#pragma unroll 1
  for (uint32_t group = 0; group < p.count; ++group) {
    const uint32_t most = p.capacity == 0 ? p.m : p.capacity;
    const uint32_t given = min(static_cast<uint32_t>(max(p.rows[group], 0)), most);
    const uint32_t begin = p.capacity == 0 ? end : group * p.capacity;
    end = p.capacity == 0 ? max(begin, given) : begin + given;
    if (row >= begin && row < end) {
      *found = {group, begin, end, p.scale_rows == nullptr ? scale_row : p.scale_rows[group]};
      return true;
    }
    scale_row += (end - begin + kScaleTileRows - 1) / kScaleTileRows * kScaleTileRows;
  }
  return false;
}

__device__ inline void store_empty_groups(const EmptySumParams& p, uint32_t zeros, uint32_t n,
                                          uint32_t m) {
  const GroupParams& groups = p.groups;
#pragma unroll 1
  for (; m < p.m; m += p.row_ctas * kEmptySumRows) {
    EmptyGroup of;
    if (!group_of_row(groups, m, &of)) continue;
    const float alpha = groups.alpha == nullptr ? p.alpha : load_scalar(groups.alpha + of.group);
    GeneralColumns columns(p, alpha, n, of.group * groups.bias_stride);
    if (p.epilogue.d_scales_are_tiles != 0) columns.d_scales.shift = of.scale_row - of.begin;
    if (groups.d_tensor_scale != nullptr) {
      columns.d_scales.tensor_scale = groups.d_tensor_scale + of.group;
    }
    store_general(p, SumRows{zeros, 0, 0, n, m, 1, m + 1}, columns, 1.0f);
  }
}

__device__ inline void store_empty_sums(const EmptySumParams& p) {
  __shared__ float4 zeros;
  ptx::griddepcontrol_launch_dependents();
  if (threadIdx.x == 0) zeros = make_float4(0, 0, 0, 0);
  __syncthreads();
  const uint32_t n = blockIdx.x * kEmptySumColumns + threadIdx.x % 32 * 4;
  const uint32_t m = blockIdx.y % p.row_ctas * kEmptySumRows + threadIdx.x / 32;
  if (p.groups.count > 0) {
    ptx::griddepcontrol_wait();  // an earlier grid may write the rows of groups
    return store_empty_groups(p, ptx::shared_address(&zeros), n, m);
  }
  for (uint32_t batch = blockIdx.y / p.row_ctas; batch < p.batches; batch += p.batch_ctas) {
    const SumRows rows{ptx::shared_address(&zeros), 0,  batch, n, m,
                       p.row_ctas * kEmptySumRows,  p.m};
    store_general(p, rows, GeneralColumns(p, p.alpha, n), 1.0f);
  }
}

}  // namespace nvfp4
