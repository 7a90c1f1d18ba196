// SPDX-License-Identifier: MIT
// Whole sums of a group to D on Hopper: rounded first, turned in shared memory, [token][weight].
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"

namespace nvfp4 {

// A warp's fragment as rows of fp16 in shared memory, [token][weight], whose 16-byte pieces lie XOR
// token % 8: eight tokens' pieces of a matrix hit 32 banks. Eight tokens, or a multiple of 16.
template <typename Tile, uint32_t kTokens, uint32_t kSums>
__device__ void put_rows(const float (&sums)[kSums], uint32_t first, float alpha, uint32_t at,
                         uint32_t warp, uint32_t lane) {
  constexpr uint32_t kRowBytes = Tile::kWeights * 2;
  // Of a matrix of 8 weights x 8 tokens this lane gives the address of a token.
  const uint32_t row = lane / 16 * 8 + lane % 8;
  const uint32_t piece = warp % Tile::kConsumersPerStage * 2 + lane / 8 % 2;
  const uint32_t to = at + row * kRowBytes + (piece ^ row % 8) * 16;
  const auto words = [&](uint32_t block, uint32_t i) {
    const uint32_t s = (first / 8 + block) * 4 + i * 2;
    return Epilogue90<Tile>::finish(sums[s], sums[s + 1], alpha);
  };
  if constexpr (kTokens == 8) {
    ptx::stmatrix_x2_trans(to, {words(0, 0), words(0, 1)});
  } else {
    static_assert(kTokens % 16 == 0);
#pragma unroll
    for (uint32_t b = 0; b < kTokens / 8; b += 2) {
      ptx::stmatrix_x4_trans(to + b * 8 * kRowBytes,
                             {words(b, 0), words(b, 1), words(b + 1, 0), words(b + 1, 1)});
    }
  }
}

// A group's whole sums, of its share of the tile's tokens, to D by way of rows of fp16 in shared
// memory: all of them, or kRowsPerPass at a time beside the rings in use. All rows of a lane are
// read before one is stored, or each store would wait for a read of its own.
template <typename Tile, uint32_t kSums>
__device__ void store_rows(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                           uint32_t warp, uint32_t lane, const float (&sums)[kSums]) {
  constexpr uint32_t kTokens = kSums * 2,
                     kRows = Tile::kSeveralTiles ? Tile::kRowsPerPass : kTokens;
  constexpr uint32_t kRowBytes = Tile::kWeights * 2, kLanesPerRow = Tile::kWeights / 4;
  constexpr uint32_t kStride = Tile::kConsumersPerStage * (32 / kLanesPerRow);
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  static_assert(kTokens % kRows == 0 && kRows % kStride == 0);
  static_assert(kRows == kTokens || Tile::kGroups == 1, "all threads of the barrier take a pass");
  const uint32_t group = warp / Tile::kConsumersPerStage;
  const uint32_t rows = at + group * kTokens * kRowBytes;
  const uint32_t m_first = tile.token_tile * Tile::kTokens + group * kTokens;
  const uint32_t column = lane % kLanesPerRow;
  const uint32_t row = warp % Tile::kConsumersPerStage * (32 / kLanesPerRow) + lane / kLanesPerRow;
  const Epilogue90<Tile> out(p, tile, tile.weight_tile * Tile::kWeights + column * 4);
#pragma unroll
  for (uint32_t first = 0; first < kTokens; first += kRows) {
    if (first > 0) {
      if (m_first + first >= p.m) break;
      ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows before are read
    }
    put_rows<Tile, kRows>(sums, first, p.alpha, rows, warp, lane);
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows are there
    uint2 four[kRows / kStride];
#pragma unroll
    for (uint32_t i = 0; i < kRows / kStride; ++i) {
      const uint32_t token = i * kStride + row;
      four[i] = ptx::ld_shared_v2_b32(rows + token * kRowBytes + (column / 2 ^ token % 8) * 16 +
                                      column % 2 * 8);
    }
#pragma unroll
    for (uint32_t i = 0; i < kRows / kStride; ++i) {
      const uint32_t m = m_first + first + i * kStride + row;
      if (m < p.m) out.store(m, four[i]);
    }
  }
  // The next tile's rows, which come after the last of these have been read.
  if (Tile::kSeveralTiles) ptx::named_barrier_sync<kConsumerBarrier, kThreads>();
}

}  // namespace nvfp4
