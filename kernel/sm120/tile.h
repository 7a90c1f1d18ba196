// SPDX-License-Identifier: MIT
// Sizes of the tiles for 12.x, and the layout of a stage. Plain C++, no CUDA.
//
//   a stage   weights  a row of k / 2 bytes for each, in the swizzle of its TMA box
//             tokens   the same
//             scales   of weights, a tile of 512 bytes for each step of 64 of K (scale_tile.h)
//             scales   of tokens, the same, of narrow tiles without the lanes of other tokens
//   then      a full and an empty barrier for each stage
//
// Once the ring is drained, the sums lie over it: [token][weight] in fp32.
#pragma once

#include <cstdint>

#include "kernel/common/scale_tile.h"

namespace nvfp4 {

constexpr uint32_t kSm120SharedBytes = 101376;  // of a CTA at most: 99 KB
constexpr uint32_t kSm120SmBytes = 102400;      // of an SM; each CTA takes 1 KB beside its own
constexpr uint32_t kSm120UnitK = 256;           // K partitions consist of such units in every tile
constexpr uint32_t kSm120MaxSplit = 8;
constexpr uint32_t kSm120TokenGroup = 16;  // token tiles that all weights meet before the next ones

template <uint32_t kTileWeights, uint32_t kTileTokens, uint32_t kBlockK, uint32_t kTileStages,
          uint32_t kWarpsOfWeights, uint32_t kWarpsOfTokens>
struct Sm120Tile {
  static constexpr uint32_t kWeights = kTileWeights;
  static constexpr uint32_t kTokens = kTileTokens;
  static constexpr uint32_t kK = kBlockK;
  static constexpr uint32_t kStages = kTileStages;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr uint32_t kRowBytes = kK / 2;  // of a box; its swizzle spans as many bytes

  // Warp (w, v) computes the m16 tiles w, w + kWarpsW, .. of weights and the n8 tiles v,
  // v + kWarpsT, .. of tokens.
  static constexpr uint32_t kWarpsW = kWarpsOfWeights, kWarpsT = kWarpsOfTokens;
  static constexpr uint32_t kWarps = kWarpsW * kWarpsT;  // that multiply
  static constexpr uint32_t kMmaRows = kWeights / 16 / kWarpsW, kMmaColumns = kTokens / 8 / kWarpsT;
  static constexpr uint32_t kConsumers = 32 * kWarps;
  static constexpr uint32_t kThreads = kConsumers + 32;

  static constexpr uint32_t kWeightBytes = kWeights * kRowBytes;
  static constexpr uint32_t kTokenBytes = kTokens * kRowBytes;
  static constexpr uint32_t kWeightScaleBytes = kScaleTileBytes;  // of a step
  // Eight tokens have 8 of the 32 lanes of a scale tile.
  static constexpr uint32_t kTokenScaleLanes = kTokens < 32 ? kTokens : 32;
  static constexpr uint32_t kTokenScaleBytes = kTokenScaleLanes * 16;
  static constexpr uint32_t kTokensAt = kWeightBytes;  // in a stage
  static constexpr uint32_t kWeightScalesAt = kTokensAt + kTokenBytes;
  static constexpr uint32_t kTokenScalesAt = kWeightScalesAt + kSteps * kWeightScaleBytes;
  static constexpr uint32_t kUsedBytes = kTokenScalesAt + kSteps * kTokenScaleBytes;
  // Swizzled rows begin where their pattern does: eight rows of 128 bytes, or of 64.
  static constexpr uint32_t kAlignment = 8 * kRowBytes;
  static constexpr uint32_t kStageBytes = (kUsedBytes + kAlignment - 1) / kAlignment * kAlignment;
  static constexpr uint32_t kFullAt = kStages * kStageBytes;
  static constexpr uint32_t kEmptyAt = kFullAt + 8 * kStages;
  static constexpr uint32_t kSharedBytes = kEmptyAt + 8 * kStages;

  // From the sums of a token to those of the next, so that a warp's lanes hit 32 banks.
  static constexpr uint32_t kSumRowBytes = (kWeights + 4) * 4;

  static constexpr uint32_t kCtasPerSm = kThreads > 256 ? 1 : 2;
  static_assert(kK == 128 || kK == 256, "a box is as wide as a swizzle of 64 or 128 bytes");
  static_assert(kSm120UnitK % kK == 0, "partitions of each tile begin at the same K");
  static_assert(kWeightBytes % kAlignment == 0 && kTokenBytes % kAlignment == 0);
  static_assert(kTokens * kSumRowBytes <= kFullAt, "the sums fit the drained ring");
  static_assert(kSharedBytes <= kSm120SharedBytes);
  static_assert(kCtasPerSm * (kSharedBytes + 1024) <= kSm120SmBytes);
  static_assert(kWeights <= kScaleTileRows && kTokens <= kScaleTileRows);

  // Members that other families' tiles have.
  static constexpr uint32_t kCtas = 1;
  static constexpr uint32_t kColumnsOfD = kWeights;
  static constexpr uint32_t kColumnsAllocated = 0;
  static constexpr bool kWorkspaceTokens = false;
  static constexpr bool kBatchInvariant = true;
  static constexpr bool kStoresByTma = false;
  static constexpr bool kSeveralTiles = false;
  static constexpr bool kUe8m0Weights = false;
  static constexpr uint32_t kAccumulators = 1;
  static constexpr uint32_t kDecodingWarps = 0;
  static constexpr uint32_t kMaxSplit = kSm120MaxSplit;
};

#define SM120_TILE(weights, tokens, k, stages, warps_w, warps_t) \
  using Sm120Tile_##weights##x##tokens = Sm120Tile<weights, tokens, k, stages, warps_w, warps_t>;
#include "kernel/sm120/tiles.def"

// The one operation (kernel/common/operations.h).
template <typename Tile>
using Sm120_any = Tile;

}  // namespace nvfp4
