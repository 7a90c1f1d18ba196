// SPDX-License-Identifier: MIT
// The general epilogue: D in any type and order, with C, bias and activation. It copies the sums to
// shared memory unchanged, where kernel/common/epilogue.cuh takes them.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/boxes.cuh"
#include "kernel/sm100/epilogue.cuh"

namespace nvfp4 {

// 8 lanes store a row of the warp's half sub-tile, four neighbouring columns each. A row of sums
// has 128 bytes, so the lanes' stores and the loads of a quarter warp hit every bank once.
constexpr uint32_t kLanesPerSumRow = kSubTileWeights / 4, kSumRows = 32 / kLanesPerSumRow;

// Differs from drain() of epilogue.cuh in what it does with half a sub-tile. A's factors of rows
// are applied on the way to shared memory, where a lane has a column, so the loop over rows needs
// no further load.
template <typename Tile, bool kScales>
__device__ void drain_general(float alpha, int64_t bias_first, const ScalesOfGroup& d_scales,
                              uint32_t first_m, uint32_t m_end, uint32_t tmem,
                              const Boxes<Tile, true>& boxes, uint32_t half) {
  const Sm100Params& p = boxes.p;
  const uint32_t lane = boxes.lane, staging = boxes.buffers.sums();
  const uint32_t row = lane / kLanesPerSumRow, column = lane % kLanesPerSumRow * 4;
  const uint32_t element = 1u << log2_bytes(p.epilogue.d_type);
  const uint32_t row_bytes = boxes.by_row() ? kBoxSide * element : element;
  const uint32_t column_bytes = boxes.by_row() ? element : kHalfRows * element;
  const uint32_t n = boxes.n_first + column;
  GeneralColumns columns(p, alpha, n, bias_first);
  columns.d_scales = d_scales;
  const bool row_scales = p.epilogue.a_scale_per_row != 0;
  ColumnScale factors;
  if (row_scales) {
    const uint32_t of_lane = boxes.n_first + lane;
    columns.factors.scale = 1;
    ptx::griddepcontrol_wait();  // a lane that stores nothing has not waited yet
    if (of_lane < p.n) factors = ColumnScale(p.epilogue, alpha, of_lane);
  }
#pragma unroll 1
  for (uint32_t i = 0; i < StagingBuffers<Tile, true>::kPieces; ++i) {
    const uint32_t first = (i * Tile::kHalves + half) * kHalfRows, m = first_m + first;
    if (m >= m_end) break;
    uint32_t sums[kHalfRows];
    ptx::tcgen05_ld_32x32b(sums, tmem + first);
    if (row_scales) scale_by_rows(p, factors, boxes.batch, m, lane, sums);
#pragma unroll
    for (uint32_t j = 0; j < kHalfRows; ++j) {
      ptx::st_shared_b32(staging + j * kSumRowBytes + lane * 4, sums[j]);
    }
    if (boxes.used()) boxes.make_room();
    __syncwarp();
    const SumRows rows{staging + row * kSumRowBytes + column * 4,
                       kSumRows * kSumRowBytes,
                       boxes.batch,
                       n,
                       m + row,
                       kSumRows,
                       min(m + kHalfRows, m_end)};
    const uint32_t to = boxes.buffers.box(i) + row * row_bytes + column * column_bytes;
    store_general<1, false, kScales>(
        p, rows, columns, 1.0f, ToStaging{boxes.used(), to, kSumRows * row_bytes, column_bytes});
    __syncwarp();  // the next half overwrites the sums
    if (boxes.used()) boxes.send(i, m);
  }
}

}  // namespace nvfp4
