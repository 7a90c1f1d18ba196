// SPDX-License-Identifier: MIT
// The epilogue of gated products. It copies half a sub-tile of each accumulator to shared memory
// unchanged, one behind the other, where kernel/common/gated.cuh takes both sums of an element.
#pragma once

#include <cstdint>

#include "kernel/common/gated.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/boxes.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/general.cuh"

namespace nvfp4 {

// Copies half a sub-tile of one accumulator to shared memory.
__device__ inline void put_half(uint32_t tmem, uint32_t staging, uint32_t lane) {
  uint32_t sums[kHalfRows];
  ptx::tcgen05_ld_32x32b(sums, tmem);
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; ++i) {
    ptx::st_shared_b32(staging + i * kSumRowBytes + lane * 4, sums[i]);
  }
}

// One warp drains its lanes of both accumulators, as drain_general does with one.
template <typename Tile>
__device__ void drain_gated(const GateAlphas& alphas, uint32_t first_m, uint32_t m_end,
                            uint32_t tmem, const Boxes<Tile, true>& boxes, uint32_t half) {
  const Sm100Params& p = boxes.p;
  const uint32_t lane = boxes.lane, staging = boxes.buffers.sums();
  const uint32_t row = lane / kLanesPerSumRow, column = lane % kLanesPerSumRow * 4;
#pragma unroll 1
  for (uint32_t i = 0; i < StagingBuffers<Tile, true>::kPieces; ++i) {
    const uint32_t first = (i * Tile::kHalves + half) * kHalfRows, m = first_m + first;
    if (m >= m_end) break;
    put_half(tmem + first, staging, lane);
    put_half(tmem + Tile::kTokens + first, staging + kHalfSumBytes, lane);
    __syncwarp();
    const SumRows rows{staging + row * kSumRowBytes + column * 4,
                       kSumRows * kSumRowBytes,
                       boxes.batch,
                       boxes.n_first + column,
                       m + row,
                       kSumRows,
                       min(m + kHalfRows, m_end)};
    store_gated(p, gated_params(p).gate, alphas, rows, kHalfSumBytes, 1.0f);
    __syncwarp();  // the next half overwrites the sums
  }
}

}  // namespace nvfp4
