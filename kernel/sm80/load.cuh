// SPDX-License-Identifier: MIT
// All lanes of a warp load a k-block's codes, scales and tokens into a stage of its ring by
// cp.async. If K or N ends inside the k-block, the rest is filled with zero codes and zero tokens.
#pragma once

#include <cstdint>

#include "kernel/common/scale_tile.h"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm80/cta.cuh"

namespace nvfp4 {

// Addresses from which a lane copies. It copies the same 16-byte piece of every eighth row of codes
// and of every second token. From scales in tiles it copies the rows lane and lane + 32.
template <typename Tile, typename Operand>
struct Sm80Source {
  static constexpr uint32_t kCodeLanes = kSm80CodeRowBytes / 16;    // per row
  static constexpr uint32_t kTokenLanes = kSm80TokenRowBytes / 16;  // per token

  const uint8_t *codes, *scales, *tokens;  // those of the warp's next k-block
  uint32_t block;                          // index of that k-block

  __device__ Sm80Source(const Sm80Cta<Tile>& cta, uint32_t warp, uint32_t lane)
      : block(cta.first_block + warp) {
    const Sm80Params& p = cta.p;
    codes = p.weights + cta.at.batch * p.weight_batch_bytes +
            static_cast<int64_t>(cta.at.n + lane / kCodeLanes) * p.weight_row_bytes +
            block * kSm80CodeRowBytes + lane % kCodeLanes * 16;
    scales = p.weight_scales + cta.at.batch * p.weight_scales_batch_bytes +
             scale_tile_number(cta.at.n / kScaleTileRows, tiles(p), block * tiles_of_block(p)) *
                 kScaleTileBytes +
             scale_lane(lane) + scale_band(cta.at.n % kScaleTileRows);
    tokens = p.tokens + cta.at.batch * p.token_batch_bytes +
             static_cast<int64_t>(cta.at.m + lane / kTokenLanes) * p.token_row_bytes +
             block * kSm80TokenRowBytes + lane % kTokenLanes * 16;
  }
  // Tiles of scales, four scales of K each: in all of K, and in a k-block.
  static __device__ uint32_t tiles(const Sm80Params& p) {
    const uint32_t log2 = log2_of_scale<Operand>(p) + 2;
    return (p.k + (1u << log2) - 1) >> log2;
  }
  static __device__ uint32_t tiles_of_block(const Sm80Params& p) {
    return kSm80BlockK >> (log2_of_scale<Operand>(p) + 2);
  }
  __device__ bool whole(const Sm80Params& p) const { return (block + 1) * kSm80BlockK <= p.k; }
  static __device__ uint32_t swizzle(uint32_t line, uint32_t row) {
    return sm80_token_swizzle(line, row);
  }
  __device__ void advance(const Sm80Params& p) {
    block += Tile::kWarps;
    codes += Tile::kWarps * kSm80CodeRowBytes;
    scales += Tile::kWarps * tiles_of_block(p) * kScaleTileBytes;
    tokens += Tile::kWarps * kSm80TokenRowBytes;
  }
};

// Bytes from a tile's first row to its 33rd. In a grouped product the host says it.
template <typename Tile>
__device__ int64_t bytes_of_half(const Sm80Params& p) {
  return Tile::kGrouped ? grouped_params(p).half_bytes : kSm80HalfWeights * p.weight_row_bytes;
}
// The same of scales, of which rows or bands of 32 rows are `row_bytes` apart.
template <typename Tile>
__device__ int64_t scale_bytes_of_half(const Sm80Params& p, int64_t otherwise) {
  return Tile::kGrouped ? grouped_params(p).half_scales_bytes : otherwise;
}
// Whether a row of the tile exists.
template <typename Tile>
__device__ bool has_row(const Sm80Cta<Tile>& cta, uint32_t row) {
  return row % cta.columns() < cta.weights;
}

template <typename Tile, typename Operand>
__device__ void load_codes_80(const Sm80Cta<Tile>& cta, const Sm80Source<Tile, Operand>& source,
                              uint32_t stage, uint32_t lane) {
  constexpr uint32_t kLanes = Sm80Source<Tile, Operand>::kCodeLanes, kRows = 32 / kLanes;
  const Sm80Params& p = cta.p;
  constexpr uint32_t kHalf = kSm80HalfWeights / kRows;
  const uint8_t* from = source.codes;
  const uint32_t to = stage + lane * 16;  // rows are contiguous
  const auto go_on = [&](uint32_t i) {
    from += kRows * p.weight_row_bytes;
    if (i + 1 == kHalf) from += bytes_of_half<Tile>(p) - kSm80HalfWeights * p.weight_row_bytes;
  };
  if (cta.weights == cta.columns() && source.whole(p)) {
#pragma unroll
    for (uint32_t i = 0; i < kSm80Weights / kRows; ++i) {
      ptx::cp_async_16(to + i * kRows * kSm80CodeRowBytes, from);
      go_on(i);
    }
    return;
  }
  const uint32_t begin = source.block * kSm80CodeRowBytes + lane % kLanes * 16;
  const uint32_t bytes = begin >= p.k / 2 ? 0 : min(p.k / 2 - begin, 16u);
#pragma unroll 1
  for (uint32_t i = 0; i < kSm80Weights / kRows; ++i) {
    const bool there = bytes > 0 && has_row(cta, kRows * i + lane / kLanes);
    ptx::cp_async_16_of(to + i * kRows * kSm80CodeRowBytes, there ? from : p.weights,
                        there ? bytes : 0);
    go_on(i);
  }
}

// Copies four bytes, the scales of 64 or of 128 elements, to the place of each row in the stage.
template <typename Tile, typename Operand>
__device__ void load_tiled_scales_80(const Sm80Cta<Tile>& cta,
                                     const Sm80Source<Tile, Operand>& source, uint32_t to,
                                     uint32_t lane) {
  const uint32_t tiles = source.tiles_of_block(cta.p);
#pragma unroll
  for (uint32_t step = 0; step < kSm80ScaleRowBytes / 4; ++step) {
    const bool there = step < tiles && source.block * tiles + step < source.tiles(cta.p);
    const uint8_t* const tile =
        there ? source.scales + step * kScaleTileBytes : cta.p.weight_scales;
#pragma unroll
    for (uint32_t band = 0; band < 2; ++band) {
      ptx::cp_async_4_if(to + (lane + 32 * band) * kSm80ScaleRowBytes + step * 4,
                         tile + band * scale_bytes_of_half<Tile>(cta.p, 4), there);
    }
  }
}

// The same for rows of K/16 or K/32 bytes, which begin at multiples of four only if K is a multiple
// of 64 or 128. A k-block has two words of a row, or one.
template <typename Tile, typename Operand>
__device__ void load_linear_scales_80(const Sm80Cta<Tile>& cta, uint32_t block, uint32_t to,
                                      uint32_t lane) {
  const Sm80Params& p = cta.p;
  constexpr uint32_t kWords = kSm80ScaleRowBytes / 4;
  const uint32_t log2 = log2_of_scale<Operand>(p), row_bytes = p.k >> log2;
  const uint32_t block_bytes = kSm80BlockK >> log2, word = lane % kWords * 4;
  const uint32_t begin = block * block_bytes + word;
  const uint32_t count = begin >= row_bytes || word >= block_bytes ? 0 : min(row_bytes - begin, 4u);
  const uint8_t* const base = p.weight_scales + cta.at.batch * p.weight_scales_batch_bytes;
  const int64_t half = scale_bytes_of_half<Tile>(p, int64_t{kSm80HalfWeights} * row_bytes);
#pragma unroll 4
  for (uint32_t row = lane / kWords; row < kSm80Weights; row += 32 / kWords) {
    const uint32_t bytes = has_row(cta, row) ? count : 0;
    const uint8_t* from = base;
    if (bytes != 0) {
      from += static_cast<int64_t>(cta.at.n + row % kSm80HalfWeights) * row_bytes + begin +
              row / kSm80HalfWeights * half;
    }
    const uint32_t at = to + row * kSm80ScaleRowBytes + lane % kWords * 4;
    if (row_bytes % 4 == 0) {
      ptx::cp_async_4_if(at, from, bytes != 0);
      continue;
    }
    uint32_t word = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      word |= ptx::ld_global_u8_if(from + i, i < bytes) << 8 * i;
    }
    ptx::st_shared_b32(at, word);
  }
}

// Loads everything except the tokens.
template <typename Tile, typename Operand>
__device__ void load_weights_80(const Sm80Cta<Tile>& cta, const Sm80Source<Tile, Operand>& source,
                                uint32_t stage, uint32_t lane) {
  load_codes_80(cta, source, stage, lane);
  if (cta.p.scales_are_linear != 0) {
    load_linear_scales_80<Tile, Operand>(cta, source.block, stage + kSm80CodeBytes, lane);
  } else {
    load_tiled_scales_80(cta, source, stage + kSm80CodeBytes, lane);
  }
}

template <typename Tile, typename Source>
__device__ void load_tokens_80(const Sm80Cta<Tile>& cta, const Source& source, uint32_t stage,
                               uint32_t lane) {
  constexpr uint32_t kLanes = Source::kTokenLanes, kRows = 32 / kLanes;
  const Sm80Params& p = cta.p;
  const uint32_t row = lane / kLanes, piece = lane % kLanes;
  const bool there = source.block * kSm80BlockK + piece * 8 < p.k;
  const uint8_t* from = there ? source.tokens : p.tokens;
  const int64_t step = there ? kRows * p.token_row_bytes : 0;
  const uint32_t to = stage + kSm80CodeBytes + kSm80ScaleBytes + row * kSm80TokenRowBytes +
                      (piece ^ Source::swizzle(piece / 8, row)) * 16;
#pragma unroll
  for (uint32_t i = 0; i < Tile::kTokens / kRows; ++i, from += step) {
    const uint32_t own = to ^ Source::swizzle(0, kRows * i) * 16;  // row + 2 i has other low bits
    ptx::cp_async_16_of_if(own + i * kRows * kSm80TokenRowBytes, from, there ? 16 : 0,
                           row + kRows * i < cta.tokens);
  }
}

}  // namespace nvfp4
