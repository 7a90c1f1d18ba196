// SPDX-License-Identifier: MIT
// Registers to D on Hopper: sums, alpha, rounding to fp16, 8-byte stores along n. Whole sums are
// rounded first and turned in shared memory, [token][weight]; those of the CTAs of a cluster go
// there in fp32 and are added in the order of K, by each CTA for its share of the tokens; so are
// those of groups with few tokens.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/sums/add.cuh"

namespace nvfp4 {

// Named barriers of a CTA; 0 is that of all threads.
constexpr uint32_t kConsumerBarrier = 1, kInitBarrier = 2, kClearBarrier = 3;

// A fragment of one warp: 16 weights from `first_weight`, 8 tokens for each four sums.
template <typename Tile, uint32_t kSums>
__device__ void put_sums(const float (&sums)[kSums], uint32_t at, uint32_t first_weight,
                         uint32_t lane) {
  const uint32_t g = lane / 4, c = lane % 4;
  const uint32_t own = at + 2 * c * Tile::kSumRowBytes + (first_weight + g) * 4;
#pragma unroll
  for (uint32_t block = 0; block < kSums / 4; ++block) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t token = block * 8 + i % 2;
      const uint32_t weight = i / 2 * 8;
      ptx::st_shared_f32(own + token * Tile::kSumRowBytes + weight * 4, sums[block * 4 + i]);
    }
  }
}

// Four neighbouring weights of one token: the parts of every rank, first to last.
template <typename Tile, uint32_t kSplit>
__device__ float4 sum_of_parts(uint32_t at) {
  static_assert(kSplit == 1 || Tile::kParts == 1, "of groups, or of CTAs");
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
  return add_parts(part);
}

// The factor of the decoding comes back first: a power of two, so nothing is rounded.
template <typename Tile>
__device__ uint32_t finish_pair(float low, float high, float alpha) {
  constexpr float kScale = Tile::kBlockSums ? kBlockSumScale : kSumScale;
  return ptx::cvt_rn_f16x2_f32(__fmul_rn(alpha, high * kScale), __fmul_rn(alpha, low * kScale));
}

// Four neighbouring weights of any token, from n on, to D.
struct FourWeights {
  const Sm90Params& p;
  uint32_t n;
  bool vectors;
  uint16_t* d;

  __device__ FourWeights(const Sm90Params& params, const TileCoordinate& tile, uint32_t first)
      : p(params),
        n(first),
        vectors(((p.d_ld | p.d_batch_stride) & 3) == 0 && n + 4 <= p.n),
        d(static_cast<uint16_t*>(p.d) + tile.batch * p.d_batch_stride + n) {}

  __device__ void store(uint32_t m, const uint2& four) const {
    uint16_t* out = d + m * p.d_ld;
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
  __device__ void store_sums(uint32_t m, const float4& sum) const {
    store(m, make_uint2(finish_pair<Tile>(sum.x, sum.y, p.alpha),
                        finish_pair<Tile>(sum.z, sum.w, p.alpha)));
  }
};

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
    return finish_pair<Tile>(sums[s], sums[s + 1], alpha);
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
  const FourWeights out(p, tile, tile.weight_tile * Tile::kWeights + column * 4);
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

// Stores the tokens of this CTA's share: a lane takes 4 weights of a row, a warp as many rows as it
// has lanes for. A batch of rows is read before the first of them is used, or each would wait for
// its own sums, which takes longer than all else where they come from another CTA.
template <typename Tile, uint32_t kSplit>
__device__ void store_share(const Sm90Params& p, const TileCoordinate& tile, uint32_t rank,
                            uint32_t at, uint32_t warp, uint32_t lane) {
  constexpr uint32_t kLanesPerRow = Tile::kWeights / 4, kRows = 32 / kLanesPerRow;
  constexpr uint32_t kStride = Tile::kConsumerWarps * kRows;
  constexpr uint32_t kShare = share_of(Tile::kTokens, kSplit);
  constexpr uint32_t kRounds = (kShare + kStride - 1) / kStride;
  constexpr uint32_t kFits = kSplit * Tile::kParts < 8 ? 16 / (kSplit * Tile::kParts) : 1;
  constexpr uint32_t kBatch = kRounds < kFits ? kRounds : kFits;
  const uint32_t m_first = tile.token_tile * Tile::kTokens;
  const uint32_t column = lane % kLanesPerRow;
  const FourWeights out(p, tile, tile.weight_tile * Tile::kWeights + column * 4);
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
      if (token < end) out.store_sums<Tile>(m_first + token, sums[i]);
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
