// SPDX-License-Identifier: MIT
// Registers to D on Hopper: sums, alpha, rounding to fp16, 8-byte stores along n. Sums in parts, of
// groups or of the CTAs of a cluster, go to shared memory in fp32, [token][weight], and are added
// in the order of K, by each CTA for its share of the tokens. Whole sums are rounded first.
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "decode.cuh"
#include "gemm_params.h"
#include "ptx_cluster.cuh"
#include "ptx_sync.cuh"

namespace nvfp4 {

// Named barriers of a CTA; 0 is that of all threads.
constexpr uint32_t kConsumerBarrier = 1, kInitBarrier = 2, kClearBarrier = 3;

// The fragment of one warp: 16 weights from `first_weight`, all tokens of the tile.
template <typename Tile>
__device__ void put_sums(const float (&sums)[Tile::kTokens / 2], uint32_t at, uint32_t first_weight,
                         uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t own = at + 2 * c * Tile::kSumRowBytes + (first_weight + g) * 4;
#pragma unroll
  for (uint32_t block = 0; block < Tile::kTokens / 8; ++block) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t token = block * 8 + i % 2;
      const uint32_t weight = i / 2 * 8;
      ptx::st_shared_f32(own + token * Tile::kSumRowBytes + weight * 4, sums[block * 4 + i]);
    }
  }
}

__device__ inline float4 add(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// Four neighbouring weights of one token: the parts of every rank, first to last.
template <typename Tile, uint32_t kSplit>
__device__ float4 sum_of_parts(uint32_t at) {
  float4 part[kSplit * Tile::kParts];
#pragma unroll
  for (uint32_t rank = 0; rank < kSplit; ++rank) {
#pragma unroll
    for (uint32_t i = 0; i < Tile::kParts; ++i) {
      const uint32_t from = at + i * Tile::kPartBytes;
      part[rank * Tile::kParts + i] = kSplit == 1
                                          ? ptx::ld_shared_v4_f32(from)
                                          : ptx::ld_shared_cluster_v4_f32(ptx::mapa(from, rank));
    }
  }
  float4 sum = part[0];
#pragma unroll
  for (uint32_t i = 1; i < kSplit * Tile::kParts; ++i) sum = add(sum, part[i]);
  return sum;
}

// The factor of the decoding comes back first: a power of two, so nothing is rounded.
template <typename Tile>
__device__ uint16_t finish(float sum, float alpha) {
  constexpr float kScale = Tile::kBlockSums ? kBlockSumScale : kSumScale;
  return ptx::cvt_rn_f16_f32(__fmul_rn(alpha, sum * kScale));
}

__device__ inline uint32_t pack(uint16_t low, uint16_t high) {
  return static_cast<uint32_t>(high) << 16 | low;
}

// Four weights of a token to D.
__device__ inline void store_four(const GemmParams& p, uint16_t* out, uint32_t n, bool vectors,
                                  const uint2& four) {
  if (vectors) {
    *reinterpret_cast<uint2*>(out) = four;
    return;
  }
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t word = k < 2 ? four.x : four.y;
    if (n + k < p.n) out[k] = static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16);
  }
}

template <typename Tile>
__device__ void store_row(const GemmParams& p, uint16_t* out, uint32_t n, bool vectors,
                          const float4& sum) {
  store_four(p, out, n, vectors,
             make_uint2(pack(finish<Tile>(sum.x, p.alpha), finish<Tile>(sum.y, p.alpha)),
                        pack(finish<Tile>(sum.z, p.alpha), finish<Tile>(sum.w, p.alpha))));
}

// A group's whole sums to D, by way of 32 tokens' rows of fp16 in shared memory at a time, whose
// 16-byte pieces lie XOR token % 8: eight tokens' pieces of a matrix hit 32 banks.
template <typename Tile>
__device__ void store_rows(const GemmParams& p, const TileCoordinate& tile, uint32_t at,
                           uint32_t warp, uint32_t lane, const float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kRowBytes = Tile::kWeights * 2;
  constexpr uint32_t kRows = Tile::kRowsBytes / kRowBytes, kBlocks = kRows / 8;
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  static_assert(Tile::kWeights == 128 && kBlocks % 2 == 0 && kRows % Tile::kConsumerWarps == 0 &&
                Tile::kTokens % kRows == 0);
  // Of a matrix of 8 weights x 8 tokens this lane gives the address of a token.
  const uint32_t row = lane / 16 * 8 + lane % 8, piece = warp * 2 + lane / 8 % 2;
  const uint32_t to = at + row * kRowBytes + (piece ^ row % 8) * 16;
  const uint32_t n = tile.weight_tile * Tile::kWeights + lane * 4;
  const bool vectors = ((p.d_ld | p.d_batch_stride) & 3) == 0 && n + 4 <= p.n;
  uint16_t* d = static_cast<uint16_t*>(p.d) + tile.batch * p.d_batch_stride + n;
#pragma unroll
  for (uint32_t first = 0; first < Tile::kTokens; first += kRows) {
    if (tile.token_tile * Tile::kTokens + first >= p.m) break;
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; b += 2) {
      uint32_t words[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t s = (first / 8 + b) * 4 + i * 2;
        words[i] = pack(finish<Tile>(sums[s], p.alpha), finish<Tile>(sums[s + 1], p.alpha));
      }
      ptx::stmatrix_x4_trans(to + b * 8 * kRowBytes, words);
    }
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows are there
#pragma unroll
    for (uint32_t r = 0; r < kRows; r += Tile::kConsumerWarps) {
      const uint32_t token = r + warp, m = tile.token_tile * Tile::kTokens + first + token;
      if (m >= p.m) break;
      const uint2 four = ptx::ld_shared_v2_b32(at + token * kRowBytes +
                                               (lane / 2 ^ token % 8) * 16 + lane % 2 * 8);
      store_four(p, d + m * p.d_ld, n, vectors, four);
    }
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // and read
  }
}

// Stores the tokens of this CTA's share: a lane takes 4 weights of a row, a warp as many rows as it
// has lanes for. A batch of rows is read before the first of them is used, or each would wait for
// its own sums, which takes longer than all else where they come from another CTA.
template <typename Tile, uint32_t kSplit>
__device__ void store_share(const GemmParams& p, const TileCoordinate& tile, uint32_t rank,
                            uint32_t at, uint32_t warp, uint32_t lane) {
  constexpr uint32_t kLanesPerRow = Tile::kWeights / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kStride = Tile::kConsumerWarps * kRows;
  constexpr uint32_t kShare = (Tile::kTokens + kSplit - 1) / kSplit;
  constexpr uint32_t kRounds = (kShare + kStride - 1) / kStride;
  constexpr uint32_t kFits = kSplit * Tile::kParts < 8 ? 16 / (kSplit * Tile::kParts) : 1;
  constexpr uint32_t kBatch = kRounds < kFits ? kRounds : kFits;
  const uint32_t m_first = tile.token_tile * Tile::kTokens;
  const uint32_t column = lane % kLanesPerRow;
  const uint32_t n = tile.weight_tile * Tile::kWeights + column * 4;
  uint16_t* d = static_cast<uint16_t*>(p.d) + tile.batch * p.d_batch_stride + n;
  const bool vectors = ((p.d_ld | p.d_batch_stride) & 3) == 0 && n + 4 <= p.n;
  const uint32_t end = min(min((rank + 1) * kShare, Tile::kTokens), p.m - m_first);
  for (uint32_t first = rank * kShare + warp * kRows + lane / kLanesPerRow; first < end;
       first += kBatch * kStride) {
    float4 sums[kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = min(first + i * kStride, Tile::kTokens - 1);
      sums[i] = sum_of_parts<Tile, kSplit>(at + token * Tile::kSumRowBytes + column * 16);
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = first + i * kStride;
      if (token < end) store_row<Tile>(p, d + (m_first + token) * p.d_ld, n, vectors, sums[i]);
    }
  }
}

// What put_sums has written, by all consumer warps.
template <typename Tile, uint32_t kSplit>
__device__ void store_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  if constexpr (kSplit == 1) {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  } else {
    ptx::cluster_sync();  // every CTA's sums are there
  }
  store_share<Tile, kSplit>(cta.p, cta.tile, cta.rank, cta.smem + Tile::kSumsAt, warp, lane);
  if constexpr (kSplit != 1)
    ptx::cluster_sync_relaxed();  // nobody leaves while others read its sums
}

}  // namespace nvfp4
