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
constexpr uint32_t kSumRowBytes = kSubTileWeights * 4;  // fp32 sums
// Any other epilogue than the fast one takes half a sub-tile at once: its sums and a box then fit
// beside a pair's ring, and with few tokens both warps of a band have some.
constexpr uint32_t kHalfRows = kHalfBoxRows;
constexpr uint32_t kHalfSumBytes = kHalfRows * kSumRowBytes;

// The staging buffers of a warp, which takes every other sub-tile of its lane band, or every other
// half of one. In a CTA with a single tile each has a box of its own, of any type, so that no store
// waits for another. In a CTA with several tiles a warp has one box or two, of 2-byte elements or
// of 4-byte elements of half as many rows. Any other epilogue than the fast one also needs room for
// the sums.
template <typename Tile, bool kGeneral>
struct StagingBuffers {
  static constexpr uint32_t kRows = kGeneral ? kHalfRows : kSubTileTokens;
  static constexpr uint32_t kPieces = Tile::kTokens / kRows / Tile::kHalves;
  static constexpr uint32_t kBoxBytes = kRows * kSubTileWeights * (Tile::kSeveralTiles ? 2 : 4);
  static constexpr uint32_t kSumBytes = kGeneral ? Tile::kMatrices * kHalfSumBytes : 0;
  static constexpr uint32_t kBoxes =
      Tile::kSeveralTiles ? (Tile::kWarpStagingBytes - kSumBytes) / kBoxBytes : kPieces;
  static constexpr uint32_t kWarpBytes = kSumBytes + kBoxes * kBoxBytes;
  static constexpr uint32_t kAt = Tile::kSeveralTiles ? Tile::kStagingAt : 0;
  static_assert(kBoxes > 0 || (kGeneral && !Tile::kStoresByTma));
  static_assert(Tile::kEpilogueWarps * kWarpBytes <=
                    (Tile::kSeveralTiles ? Tile::kStagingBytes : Tile::kStagingAt),
                "they lie in the ring, or in the staging buffers after it");

  uint32_t smem, epilogue_warp;
  __device__ uint32_t sums() const { return smem + kAt + epilogue_warp * kWarpBytes; }
  __device__ uint32_t box(uint32_t piece) const {
    if constexpr (kBoxes == 0) return 0;  // a grouped product sends none
    return sums() + kSumBytes + piece % max(kBoxes, 1u) * kBoxBytes;
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

  // Waits until the next box is free, which an earlier sub-tile may have used.
  __device__ void make_room() const {
    if constexpr (0 < Its::kBoxes && Its::kBoxes < Its::kPieces) {
      if (ptx::elect_sync()) ptx::cp_async_bulk_wait_group_read<Its::kBoxes - 1>();
      __syncwarp();
    }
  }

  // Stores a box, which the lanes have filled, to the rows from m on. TMA drops what lies outside
  // D. `by_row`: the order of D, and that of the box.
  __device__ void send(uint32_t piece, uint32_t m, bool by_row = true) const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (ptx::elect_sync()) {
      ptx::cp_async_bulk_tensor_3d_store(&p.d_map, by_row ? n_first : m, by_row ? m : n_first,
                                         batch, buffers.box(piece));
      ptx::cp_async_bulk_commit_group();
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
