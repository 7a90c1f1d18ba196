// SPDX-License-Identifier: MIT
// Own parts on Hopper (cta.cuh): a CTA adds a tile's sums in the order of a cluster whose tiles
// have four groups. It adds the pieces of a part first to last. Then it adds the part to those
// before it, which wait in the workspace meanwhile. There each thread reads back what it has stored
// itself.
#pragma once

#include <cstdint>

#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"

namespace nvfp4 {

// The piece that a warp multiplies, and the thread's sums of those before it in the same part.
template <typename Tile, bool = Tile::kAddsOwnParts>
struct OwnPart {};

template <typename Tile>
struct OwnPart<Tile, true> {
  static constexpr uint32_t kFours = Tile::kTokens / 8, kThreads = Tile::kConsumerWarps * 32;
  uint32_t piece = 0;
  float sums[kFours * 4];

  __device__ OwnPart() { clear(); }

  // Adds the sums of the piece and goes on to the next one. True if there is none: `of_piece` then
  // becomes the sums of the tile.
  __device__ bool completes_tile(Cta90<Tile> cta, float (&of_piece)[kFours * 4]) {
#pragma unroll
    for (uint32_t i = 0; i < kFours * 4; ++i) sums[i] = __fadd_rn(sums[i], of_piece[i]);
    const uint32_t part = piece / kPiecesOfPart;
    const bool last = !take_next_piece(cta);
    piece = last ? 0 : cta.piece;
    if (!last && piece / kPiecesOfPart == part) return false;
    if (part > 0) add_parts_before(cta.p);
    if (last) {
#pragma unroll
      for (uint32_t i = 0; i < kFours * 4; ++i) of_piece[i] = sums[i];
    } else {
      store(cta.p);
    }
    clear();
    return last;
  }

 private:
  __device__ void clear() {
#pragma unroll
    for (float& sum : sums) sum = -0.0f;  // adding it changes nothing
  }
  __device__ float4* place(const Sm90Params& p) const {
    return reinterpret_cast<float4*>(p.parts) + blockIdx.x * (kFours * kThreads) + threadIdx.x;
  }
  __device__ void store(const Sm90Params& p) const {
    ptx::griddepcontrol_wait();  // earlier grids may use the workspace
#pragma unroll
    for (uint32_t i = 0; i < kFours; ++i) {
      place(p)[i * kThreads] =
          make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    }
  }
  __device__ void add_parts_before(const Sm90Params& p) {
    float4 before[kFours];
#pragma unroll
    for (uint32_t i = 0; i < kFours; ++i) before[i] = place(p)[i * kThreads];
#pragma unroll
    for (uint32_t i = 0; i < kFours; ++i) {
      sums[4 * i] = __fadd_rn(before[i].x, sums[4 * i]);
      sums[4 * i + 1] = __fadd_rn(before[i].y, sums[4 * i + 1]);
      sums[4 * i + 2] = __fadd_rn(before[i].z, sums[4 * i + 2]);
      sums[4 * i + 3] = __fadd_rn(before[i].w, sums[4 * i + 3]);
    }
  }
};

// The CTA's tile, or the piece of it whose turn it is.
template <typename Tile>
__device__ Cta90<Tile> piece_of(Cta90<Tile> cta, const OwnPart<Tile>& part) {
  if constexpr (Tile::kAddsOwnParts) take_piece(cta, part.piece);
  return cta;
}

}  // namespace nvfp4
