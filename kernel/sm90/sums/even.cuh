// SPDX-License-Identifier: MIT
// Even shares on Hopper (cta.cuh): a CTA stores the sums of its part of a tile in the workspace,
// and a kernel of its own adds all parts in the order of K.
//
// CTA i and tile t, counted from whole_tiles, have place i + t of the workspace. No two parts have
// the same place: where CTA i reaches tile t + 1, CTA i + 1 has no k-block of tile t.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/common/tiles.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"

namespace nvfp4 {

// Four sums of a thread for each 8 tokens of a tile: two weights, 8 apart, of two tokens.
__device__ inline float4* part_at(const Sm90Params& p, uint32_t cta, uint32_t tile, uint32_t block,
                                  uint32_t tile_tokens) {
  const uint64_t blocks = tile_tokens / kSm90AddTokens;
  return reinterpret_cast<float4*>(p.parts) +
         ((static_cast<uint64_t>(cta) + tile) * blocks + block) * kSm90AddThreads;
}

template <typename Tile>
__device__ void store_partition(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                const float (&sums)[Tile::kTokens / 2]) {
  static_assert(Tile::kConsumerWarps * 32 == kSm90AddThreads && Tile::kWeights == kScaleTileRows);
  float4* const to = part_at(cta.p, blockIdx.x, cta.index - cta.p.whole_tiles, 0, Tile::kTokens) +
                     32 * warp + lane;
#pragma unroll
  for (uint32_t b = 0; b < Tile::kTokens / kSm90AddTokens; ++b) {
    to[b * kSm90AddThreads] =
        make_float4(sums[4 * b], sums[4 * b + 1], sums[4 * b + 2], sums[4 * b + 3]);
  }
}

// The CTA that has a k-block in its share.
__device__ inline uint32_t owner_of(const Sm90Params& p, uint32_t block) {
  const uint32_t longer = p.even_more * (p.even_each + 1);  // k-blocks of the CTAs with one more
  if (block < longer) return block / (p.even_each + 1);
  return p.even_more + (block - longer) / p.even_each;
}

__device__ inline float4 add_four(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// A CTA takes 8 tokens of a tile. `Tile` is any tile of that type of tokens.
template <typename Tile>
__device__ void add_parts_of_tile(const Sm90Params& p) {
  constexpr uint32_t kRowFloats = kScaleTileRows + 4;  // as in put_sums(): no conflicts of banks
  __shared__ __align__(16) float rows[kSm90AddTokens * kRowFloats];
  ptx::griddepcontrol_launch_dependents();
  const uint32_t blocks = p.tile_tokens / kSm90AddTokens, stages = stages_of_k(p);
  const uint32_t tile = blockIdx.x / blocks, block = blockIdx.x % blocks;
  const uint32_t first = owner_of(p, tile * stages), last = owner_of(p, (tile + 1) * stages - 1);
  const TileCoordinate at = tile_at(p, p.whole_tiles + tile);
  const uint32_t m = at.token_tile * p.tile_tokens + block * kSm90AddTokens;
  // For the parts. Every CTA waits, so that a grid that waits for this one has all of D, too.
  ptx::griddepcontrol_wait();
  if (first == last || m >= p.m) return;  // its only CTA has stored the tile
  float4 partial[kSm90MostEvenParts];
#pragma unroll
  for (uint32_t i = 0; i < kSm90MostEvenParts; ++i) {
    if (first + i > last) break;
    partial[i] = part_at(p, first + i, tile, block, p.tile_tokens)[threadIdx.x];
  }
  float4 sum = partial[0];
#pragma unroll
  for (uint32_t i = 1; i < kSm90MostEvenParts; ++i) {
    if (first + i <= last) sum = add_four(sum, partial[i]);
  }
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float* const to = rows + lane % 4 * 2 * kRowFloats + warp * 16 + lane / 4;
  to[0] = sum.x;
  to[kRowFloats] = sum.y;
  to[8] = sum.z;
  to[kRowFloats + 8] = sum.w;
  __syncthreads();
  const SumRows mine{ptx::shared_address(rows + warp * kRowFloats + lane * 4),
                     0,
                     at.batch,
                     at.weight_tile * kScaleTileRows + lane * 4,
                     m + warp,
                     kSm90AddTokens,
                     min(p.m, m + kSm90AddTokens)};
  store_general(p, mine, GeneralColumns(p, p.alpha, mine.n), decoding_scale<Tile>(p));
}

}  // namespace nvfp4
