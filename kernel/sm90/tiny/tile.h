// SPDX-License-Identifier: MIT
// Constants of a tiny tile, up to 4 tokens, derived from its row of tiles.def.
//
// wgmma multiplies 8-bit floats here: codes of weights and tokens as e5m2 without their scales,
// which halves the cost of decoding. The sum of a block of 16 is exact: multiples of 2^-2 up to 576
// take 12 bits, and Hopper keeps 13 after the leading one. A thread multiplies the sum by both
// scales and adds in fp32. So every block has its own column of the B operand, with zeros in the
// places of the other blocks. 8 columns hold one token; a token with 4 columns uses them twice as
// often.
#pragma once

#include "kernel/common/hardware.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

template <uint32_t kTokensPerTile>
struct Sm90TinyRow;
#define SM90_TINY_TILE(weights, tokens, columns, groups, stages, ahead, ...) \
  template <>                                                                \
  struct Sm90TinyRow<tokens> {                                               \
    static constexpr uint32_t kWeights = weights;                            \
    static constexpr uint32_t kTokenColumns = columns;                       \
    static constexpr uint32_t kGroups = groups;                              \
    static constexpr uint32_t kStages = stages;                              \
    static constexpr uint32_t kStagesAhead = ahead;                          \
  };
#include "kernel/sm90/tiles.def"

// In a tile of a gated product one half of the weights are rows of b, the other half the same rows
// of b2, and each half has its own tiles of scales.
template <uint32_t kTokensPerTile, bool kOfGated = false>
struct Sm90TinyTile : Sm90TinyRow<kTokensPerTile> {
  using Row = Sm90TinyRow<kTokensPerTile>;
  using Row::kGroups;
  using Row::kStages;
  using Row::kStagesAhead;
  using Row::kTokenColumns;
  using Row::kWeights;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kCtas = 1;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr bool kWorkspaceTokens = false;
  static constexpr bool kNaturalTokens = false;
  static constexpr bool kUe8m0Weights = true;
  static constexpr uint32_t kMaxSplit = 8;
  static constexpr bool kBlockSums = true;
  static constexpr bool kPushesSums = true;
  static constexpr bool kWholeSums = false;
  static constexpr bool kBatchInvariant = false;  // it adds sums of 16
  static constexpr bool kAddsOwnParts = false;
  static constexpr bool kSeveralTiles = true;
  static constexpr bool kPlain = false;
  static constexpr bool kLinear = false;
  static constexpr bool kMxfp4 = false;
  static constexpr bool kScaledD = false;
  static constexpr bool kFields = false;
  static constexpr bool kGrouped = false;
  static constexpr bool kGated = kOfGated;
  static constexpr uint32_t kTokenStep = kTokens;  // rows of one token tile, as it is numbered
  static constexpr bool kPacked = false;
  static constexpr uint32_t kHalves = kGated ? 2 : 1;
  static constexpr uint32_t kColumnsOfD = kWeights / kHalves;
  static constexpr bool kStoresByTma = false;
  static constexpr uint32_t kAccumulators = 1;
  static constexpr uint32_t kDecodingWarps = 3;  // which know the tokens of one tile

  static constexpr uint32_t kColumns = kTokenColumns * kTokens;  // N of wgmma
  static constexpr uint32_t kWgmmas = kK / 32;                   // per k-block
  static constexpr uint32_t kUnitWgmmas = kTokenColumns / 2;     // as many as fill all columns
  static constexpr uint32_t kUnits = kWgmmas / kUnitWgmmas;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr uint32_t kStagesFirst = kStagesAhead;

  static constexpr uint32_t kWeightBytes = kWeights * kK / 2;
  static constexpr uint32_t kHalfScaleBytes = kSteps * kScaleTileBytes;  // also of other tiles
  static constexpr uint32_t kScaleBytes = kHalves * kHalfScaleBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kOperandBytes = kColumns * 32;         // per wgmma
  static constexpr uint32_t kSlotBytes = kWgmmas * kOperandBytes;  // tokens of a k-block
  static constexpr uint32_t kFactorBytes = kUnits * kColumns * 2;  // the tokens' scales, fp16

  // Sums in fp32, [rank along K][group][token][weight], in the first CTA of a cluster.
  static constexpr uint32_t kPartials = kGroups;
  static constexpr uint32_t kSumRowBytes = kWeights * 4;
  static constexpr uint32_t kPartialBytes = kTokens * kSumRowBytes;

  static constexpr uint32_t kConsumersPerStage = 4;
  static constexpr uint32_t kConsumerWarps = kConsumersPerStage * kGroups;
  // Number of lanes that write sums into the first CTA's shared memory.
  static constexpr uint32_t kSumArrivals = kConsumerWarps * 32 / (kTokenColumns / 2);

  // Shared memory, offsets from a 1024-byte aligned base.
  static constexpr uint32_t kWeightsAt = 0;
  static constexpr uint32_t kScalesAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kTokensAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kFactorsAt = kTokensAt + kStages * kSlotBytes;
  static constexpr uint32_t kSumsAt = kFactorsAt + kStages * kFactorBytes;
  static constexpr uint32_t kWeightsFullAt = kSumsAt + kMaxClusterCtas * kPartials * kPartialBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kSumsFullAt = kWeightsEmptyAt + 8 * kStages;
  static constexpr uint32_t kKTailFullAt = kSumsFullAt + 8;
  static constexpr uint32_t kSharedBytes = kKTailFullAt + 8;

  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = kDecodingWarps;
  static constexpr uint32_t kWeightArrivals = 1 + 32;  // per stage: bytes, a token warp's lanes
  static constexpr uint32_t kWarps = kFirstTokenWarp + kTokenWarps;
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr uint32_t kRegisters = kRegistersPerSm / kThreads / 8 * 8;
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  static_assert(kWeights == 64, "a wgmma's M, one group's share of a stage");
  static_assert(kTokens == 1 ? kTokenColumns == 8 : kTokenColumns == 4 && kTokens <= 4,
                "a column for each of four chunks, and for both blocks of a chunk or one of them");
  static_assert(kColumns == 8 || kColumns == 16, "N of the wgmmas of 8-bit floats in kernel/ptx");
  static_assert(kStages % kGroups == 0 && kStages >= kGroups + kStagesAhead,
                "a group does not wait for a phase while the one before is to complete: see wide");
  static_assert(kStages % kTokenWarps == 0, "a part of the ring is one token warp's");
  static_assert(kWeightBytes % kSwizzlePatternBytes == 0);
  static_assert(kFactorsAt % 16 == 0 && kWeightsFullAt % 8 == 0);
  static_assert(kSharedBytes <= kMaxSharedBytes);
};

}  // namespace nvfp4
