// SPDX-License-Identifier: MIT
// Tile constants of the sm_90a kernel, derived from the hardware's limits. The planner reads them
// too: plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/sm90/params.h"

namespace nvfp4 {

// A CTA (of `split` that share a tile along K) computes tiles of kWeights x kTokens elements of D^T,
// one unless kSeveralTiles. The weights (B) are decoded into registers, as the A operand of the
// tensor core; stages of 256 elements of K, packed codes and their scale tiles, come through a ring.
// Offsets into shared memory are from a 1024-byte aligned base.
//
// kStagesAhead: stages that are asked for beyond those that have arrived. All of a ring at once
// would be nine stages of 112 CTAs, of which memory brings the last as soon as the first: 4 us in
// which nothing is multiplied (H200, one token, 128 weights, 2026-11-21: 24.5 us with 9 of them,
// 21.9 with 3; 28.6 with 1). Stages of 64 weights are half as large.

// Tiny tiles, up to 4 tokens: wgmma of 8-bit floats. Codes of weights and tokens are e5m2, without
// their scales, which halves what decoding costs. The sum of a block of 16 is exact: multiples of
// 2^-2 up to 576 take 12 bits, and Hopper keeps 13 behind the leading one (4,325,376 of 4,325,376
// such sums of an H200 were exact, 2026-11-21). A thread multiplies it by both scales and adds in
// fp32. So every block has a column of the B operand of its own, with zeros in the other blocks'
// places: 8 columns are one token, or 4, used twice as often.
template <uint32_t kTokensPerTile>
struct Sm90TinyTile {
  static constexpr uint32_t kWeights = 64;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr bool kWorkspaceTokens = false;
  static constexpr bool kBlockSums = true;
  static constexpr bool kSeveralTiles = false;

  static constexpr uint32_t kTokenColumns = kTokens == 1 ? 8 : 4;
  static constexpr uint32_t kColumns = kTokenColumns * kTokens;  // N of wgmma
  static constexpr uint32_t kWgmmas = kK / 32;                   // of a stage
  static constexpr uint32_t kUnitWgmmas = kTokenColumns / 2;     // that fill all columns
  static constexpr uint32_t kUnits = kWgmmas / kUnitWgmmas;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr uint32_t kStages = kTokens == 4 ? 12 : 15;
  static constexpr uint32_t kStagesAhead = 5;
  static constexpr uint32_t kStagesFirst = kStagesAhead;

  static constexpr uint32_t kWeightBytes = kWeights * kK / 2;
  static constexpr uint32_t kScaleBytes = kSteps * kScaleTileBytes;  // also of the tile beside
  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kOperandBytes = kColumns * 32;         // of one wgmma
  static constexpr uint32_t kSlotBytes = kWgmmas * kOperandBytes;  // tokens of a stage
  static constexpr uint32_t kFactorBytes = kUnits * kColumns * 2;  // the tokens' scales, fp16

  // Sums in fp32, [rank along K][group][token][weight], in the first CTA of a cluster.
  static constexpr uint32_t kSplitMax = 8;
  static constexpr uint32_t kSumRowBytes = kWeights * 4;
  static constexpr uint32_t kPartBytes = kTokens * kSumRowBytes;

  static constexpr uint32_t kGroups = 3;
  static constexpr uint32_t kConsumersPerStage = 4;
  static constexpr uint32_t kConsumerWarps = 4 * kGroups;
  static constexpr uint32_t kParts = kGroups;
  static constexpr bool kPushesSums = true;
  // Of the lanes that put sums into the first CTA's shared memory.
  static constexpr uint32_t kSumArrivals = kConsumerWarps * 32 / (kTokenColumns / 2);

  static constexpr uint32_t kWeightsAt = 0;
  static constexpr uint32_t kScalesAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kTokensAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kFactorsAt = kTokensAt + kStages * kSlotBytes;
  static constexpr uint32_t kSumsAt = kFactorsAt + kStages * kFactorBytes;
  static constexpr uint32_t kWeightsFullAt = kSumsAt + kSplitMax * kParts * kPartBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kSumsFullAt = kWeightsEmptyAt + 8 * kStages;
  static constexpr uint32_t kSharedBytes = kSumsFullAt + 8;

  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = 3;
  static constexpr uint32_t kWeightArrivals = 1 + 32;  // a stage's: its bytes, a token warp's lanes
  static constexpr uint32_t kWarps = kFirstTokenWarp + kTokenWarps;
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr uint32_t kRegisters = 65536 / kThreads / 8 * 8;
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  static_assert(kTokens == 1 || kTokens == 2 || kTokens == 4);
  static_assert(kStages % kGroups == 0 && kStages >= kGroups + kStagesAhead, "see Sm90WideTile");
  static_assert(kFactorsAt % 16 == 0 && kWeightsFullAt % 8 == 0);
  static_assert(kSharedBytes <= 232448);
};

// Wide tiles: wgmma. The tokens are its B operand, fp16, in a ring of their own. Up to 16 tokens
// warps of the CTA decode them; more of them would take longer than the weights (H200, 32 tokens,
// 2026-11-21: 50.6 us against 27.3), and nvfp4_tokens_sm90 puts them into the workspace just
// before.
//   slots of kSlotSteps 64-wide slabs: fp16, 128-byte rows with the 128-byte swizzle
template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile>
struct Sm90WideTile {
  static constexpr uint32_t kWeights = kWeightsPerTile;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr bool kWorkspaceTokens = kTokens > 16;
  static constexpr bool kBlockSums = false;

  static constexpr uint32_t kCtasPerSm = 1;

  // A warpgroup multiplies 64 weights of a stage. Up to 64 tokens four of them hide what two would
  // wait for; groups that share no stage take turns, so the sums come in parts.
  static constexpr uint32_t kConsumerWarps = kTokens <= 64 ? 16 : 8;
  static constexpr uint32_t kConsumersPerStage = kWeights / 16;
  static constexpr uint32_t kGroups = kConsumerWarps / kConsumersPerStage;
  // Few tokens' sums have a place of their own, in the CTA that stores them.
  static constexpr bool kPushesSums = kTokens <= 16;
  // Of a CTA's sums, as they are added to those of others: groups' with few tokens, else whole.
  static constexpr uint32_t kParts = kPushesSums ? kGroups : 1;
  static constexpr uint32_t kPartWords = 2;  // decoded at once, of 8 in a stage
  // One group has a tile's whole sums: they go from registers to D, and the CTA, unless it shares K
  // with others, to its next tile, whose first stages have come meanwhile.
  static constexpr bool kSeveralTiles = kGroups == 1;

  static constexpr uint32_t kWeightBytes = kWeights * kK / 2;
  static constexpr uint32_t kScaleBytes = kSteps * kScaleTileBytes;  // of 128 rows
  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kSlabBytes = kTokens * kTokenRowBytes;  // 64 elements of K
  static constexpr uint32_t kSlotSteps = kTokens <= 32                     ? 4
                                         : kTokens * 128 / kWeights <= 128 ? 2
                                                                           : 1;
  static constexpr uint32_t kSlotsPerStage = kSteps / kSlotSteps;
  static constexpr uint32_t kSlotBytes = kSlotSteps * kSlabBytes;

  static constexpr uint32_t kSlots = kTokens <= 16    ? 12
                                     : kTokens == 32  ? (kWeights == 64 ? 8 : 6)
                                     : kTokens == 64  ? 8
                                     : kTokens == 128 ? (kWeights == 64 ? 8 : 4)
                                                      : 5;
  // Rows of sums are 4 floats longer than the weights, so that the 8 x 4 lanes of a fragment (8
  // weights, tokens two apart) hit 32 banks.
  static constexpr uint32_t kSumRowBytes = (kWeights + 4) * 4;
  static constexpr uint32_t kPushedRows = kTokens + 2;  // of all ranks: 3 CTAs have 6 of 16 each
  static constexpr uint32_t kPushedBytes = kPushesSums ? kParts * kPushedRows * kSumRowBytes : 0;
  static constexpr uint32_t kStages =
      (232448 - 1024 - kSlots * kSlotBytes - kPushedBytes) / kStageBytes;
  static constexpr uint32_t kStagesAhead = 256 / kWeights;
  // Asked for before the tokens' kernel has ended, of which a CTA hears the later the more it reads:
  // 1.9 us behind that kernel's start with one stage asked for, 2.8 with four (H200, 128 tokens,
  // K = 2048, 2026-11-22). With 128 weights a stage there was nothing to gain.
  static constexpr uint32_t kStagesFirst = kWorkspaceTokens && kWeights == 64 ? 1 : kStagesAhead;

  // Shared memory, offsets from a 1024-byte aligned base.
  static constexpr uint32_t kTokensAt = 0;
  static constexpr uint32_t kWeightsAt = kTokensAt + kSlots * kSlotBytes;
  static constexpr uint32_t kScalesAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kWeightsFullAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kTokensFullAt = kWeightsEmptyAt + 8 * kStages;
  static constexpr uint32_t kTokensEmptyAt = kTokensFullAt + 8 * kSlots;
  static constexpr uint32_t kSumsFullAt = kTokensEmptyAt + 8 * kSlots;
  static constexpr uint32_t kAsideAt = (kSumsFullAt + 8 + 15) / 16 * 16;
  // Rows of fp16 to D: a whole group's, or so many at once, for what the rings leave.
  static constexpr uint32_t kRowsPerPass = kTokens == 128 ? 16 : 32;
  static constexpr uint32_t kRowsBytes = kSeveralTiles ? kRowsPerPass * kWeights * 2 : 0;
  static constexpr uint32_t kSharedBytes = kAsideAt + kRowsBytes + kPushedBytes;

  // In the drained rings: what groups give each other, fp32 (sums/reduce.cuh); behind it the tile's
  // sums, fp32, [token][weight], or its rows, fp16, [token][weight]. Beside the rings: a tile's rows
  // while they fill for the next one; few tokens' sums, [rank][part][token of this CTA][weight].
  static constexpr uint32_t kGroupSumsBytes =
      kPushesSums ? 0 : (kGroups - 1) * kTokens * kWeights * 4;
  static constexpr uint32_t kPartBytes = kTokens * kSumRowBytes;
  static constexpr uint32_t kSumsAt = kPushesSums ? kAsideAt : kGroupSumsBytes;
  static constexpr uint32_t kRowsAt = kSeveralTiles ? kAsideAt : kGroupSumsBytes;

  // In the last warpgroup a warp loads weights and one loads tokens, or three decode them; it gives
  // up registers.
  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = kWorkspaceTokens ? 1 : 3;
  static constexpr uint32_t kWeightArrivals = 1;                         // a stage's
  static constexpr uint32_t kTokenArrivals = kWorkspaceTokens ? 1 : 32;  // a slot's
  // Stages that a warp which decodes has loaded ahead: what its registers hold.
  static constexpr uint32_t kTokenStagesAhead = kWeights == 128 ? 1 : 2;
  static constexpr uint32_t kWarps = kConsumerWarps + 4;
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr uint32_t kConsumerRegisters = kConsumerWarps == 8 ? 216
                                                 : kWorkspaceTokens  ? 112
                                                                     : 104;
  static constexpr uint32_t kLoaderRegisters = kConsumerWarps == 8 ? 40
                                               : kWorkspaceTokens  ? 32
                                                                   : 64;
  // What the CTA starts with, and its warpgroups share out. A CTA of nvfp4_tokens_sm90 that is still
  // there leaves it room, also in shared memory, of which every CTA takes 1,024 bytes more than it
  // asks for: where it had to wait it started 0.5 to 0.9 us later (H200, 2026-11-22).
  static constexpr uint32_t kRegisters =
      (65536 - kTokenKernelThreads * kTokenKernelRegisters) / kThreads / 8 * 8;
  static_assert(kConsumerWarps * kConsumerRegisters + 4 * kLoaderRegisters <= kWarps * kRegisters);
  static_assert(kCtasPerSm == 1, "kRegisters are one CTA's");
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  static_assert(kWeights == 64 || kWeights == 128);
  static_assert(kTokens >= 8 && kTokens <= 256 && (kTokens & (kTokens - 1)) == 0);
  static_assert(kSlots > kSlotsPerStage * (kGroups - 1) + 1,
                "a slot is given back when its group's next one is in use");
  // A barrier's phase has a parity only: a group must not come to wait for one while the one
  // before, of another group's stage, is still to complete. A slot is always the same group's. A
  // group has used a stage that was asked for when the first kGroups + kStagesAhead before its next
  // had arrived.
  static_assert(kGroups == 1 || kSlots % (kSlotsPerStage * kGroups) == 0);
  static_assert(kGroups == 1 || kStages >= kGroups + kStagesAhead);
  static_assert(kStages > kStagesAhead);
  static_assert(!kSeveralTiles || (kWorkspaceTokens && !kPushesSums && kWeights == kScaleTileRows),
                "token warps, sums_full and a lane's place among the scales serve one tile");
  static_assert(kSlabBytes % 1024 == 0 && kWeightBytes % 1024 == 0,
                "operand tiles start a 128-byte-swizzle pattern");
  static_assert(kPushesSums || kSumsAt + kPartBytes <= kWeightsFullAt,
                "the sums fit the drained rings");
  static_assert(kWeightsFullAt % 8 == 0, "an mbarrier is 8-byte aligned");
  static_assert(kSharedBytes <= 232448 - (kWorkspaceTokens ? 1024 : 0));
};

using Sm90Tile64x8 = Sm90WideTile<64, 8>;
using Sm90Tile64x16 = Sm90WideTile<64, 16>;
using Sm90Tile128x16 = Sm90WideTile<128, 16>;
using Sm90Tile64x32 = Sm90WideTile<64, 32>;
using Sm90Tile128x32 = Sm90WideTile<128, 32>;
using Sm90Tile64x64 = Sm90WideTile<64, 64>;
using Sm90Tile128x64 = Sm90WideTile<128, 64>;
using Sm90Tile64x128 = Sm90WideTile<64, 128>;
using Sm90Tile128x128 = Sm90WideTile<128, 128>;
using Sm90Tile128x256 = Sm90WideTile<128, 256>;

}  // namespace nvfp4
