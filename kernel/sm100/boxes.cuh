// SPDX-License-Identifier: MIT
// Staging buffers in which an epilogue warp transposes its sub-tiles of 32 tokens x 32 weights, and
// the TMA stores that send them. The buffers lie in the drained ring, or behind the ring where
// later tiles still use it.
#pragma once

#include <cstdint>

#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

constexpr uint32_t kSubTileTokens = kBoxSide;   // rows of D per tcgen05.ld
constexpr uint32_t kSubTileWeights = kBoxSide;  // columns per warp: its lanes of tensor memory
constexpr uint32_t kSumRowBytes = kSubTileWeights * 4;
constexpr uint32_t kSumBufferBytes = kSubTileTokens * kSumRowBytes;  // fp32 sums
constexpr uint32_t kBufferBytes = kSumBufferBytes / 2;               // 2-byte elements

// The staging buffers of a warp. In a CTA with a single tile each sub-tile has a box of its own, of
// any type, so that no store waits for another. In a CTA with several tiles a warp has three boxes.
// Each holds 2-byte elements, or 4-byte elements of half as many rows. With the general epilogue it
// has one box of 2-byte elements, and room for the sums.
template <typename Tile, bool kGeneral>
struct StagingBuffers {
  static constexpr uint32_t kPieces = Tile::kTokens / kSubTileTokens;
  static constexpr uint32_t kBoxBytes = Tile::kSeveralTiles ? kBufferBytes : kSumBufferBytes;
  static constexpr uint32_t kSumBytes = kGeneral ? Tile::kMatrices * kSumBufferBytes : 0;
  static constexpr uint32_t kBoxes =
      Tile::kSeveralTiles ? (kSumBufferBytes + kBufferBytes - kSumBytes) / kBufferBytes : kPieces;
  static constexpr uint32_t kWarpBytes = kSumBytes + kBoxes * kBoxBytes;
  static constexpr uint32_t kAt = Tile::kSeveralTiles ? Tile::kStagingAt : 0;
  static_assert(4 * kWarpBytes <= (Tile::kSeveralTiles ? Tile::kStagingBytes : Tile::kStagingAt),
                "they lie in the ring, or in the staging buffers after it");

  uint32_t smem, band;
  __device__ uint32_t sums() const { return smem + kAt + band * kWarpBytes; }
  __device__ uint32_t box(uint32_t piece) const {
    return sums() + kSumBytes + piece % kBoxes * kBoxBytes;
  }
};

// TMA stores of a warp's sub-tiles of D.
template <typename Tile, bool kGeneral>
struct Boxes {
  using Its = StagingBuffers<Tile, kGeneral>;
  const Sm100Params& p;
  Its buffers;
  uint32_t batch, n_first, lane;

  __device__ bool used() const { return Tile::kStoresByTma && p.d_by_tma != 0; }
  __device__ bool by_row() const { return !kGeneral || p.epilogue.d_column == 1; }

  // Stores a box, which the lanes have filled, to the rows from m on. TMA drops what lies outside
  // D. On return the next box is free, even if an earlier sub-tile used it.
  __device__ void send(uint32_t piece, uint32_t m) const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (ptx::elect_sync()) {
      ptx::cp_async_bulk_tensor_3d_store(&p.d_map, by_row() ? n_first : m, by_row() ? m : n_first,
                                         batch, buffers.box(piece));
      ptx::cp_async_bulk_commit_group();
      if constexpr (Its::kBoxes < Its::kPieces) {
        ptx::cp_async_bulk_wait_group_read<Its::kBoxes - 1>();
      }
    }
    __syncwarp();
  }

  // Waits until TMA has read every box: when this CTA ends, another one may get its shared memory,
  // and the next tile reuses the first box.
  __device__ void wait() const {
    if (ptx::elect_sync()) ptx::cp_async_bulk_wait_group_read<0>();
    __syncwarp();
  }
};

}  // namespace nvfp4
