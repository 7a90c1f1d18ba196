// SPDX-License-Identifier: MIT
// Constants of a wide tile, 8 to 256 tokens, derived from its row of tiles.def.
//
// The tokens are wgmma's B operand, fp16, in a ring of their own: slots of kSlotSteps token
// sub-tiles of 64 elements of K, 128-byte rows with the 128-byte swizzle. Warps of the CTA decode
// up to 16 tokens. For more tokens that would take longer than the weights, so nvfp4_tokens_sm90
// decodes them into the workspace just before. Tokens that are already fp16 or bf16 come from A
// unchanged.
#pragma once

#include "kernel/common/hardware.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

enum class Sm90Tokens { decoded, workspace, natural };
enum class Sm90Sums { pushed, shared_out, whole };
enum class Sm90TokenType { nvfp4, f16, bf16 };

template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile, bool kNatural>
struct Sm90WideRow;
#define SM90_WIDE_TILE(weights, tokens, source, sums, groups, stages, ahead, first, slots, steps, \
                       early, rows, consumer, loader, ...)                                        \
  template <>                                                                                     \
  struct Sm90WideRow<weights, tokens, Sm90Tokens::source == Sm90Tokens::natural> {                \
    static constexpr bool kGated = false;                                                         \
    static constexpr bool kPacked = false;                                                        \
    static constexpr Sm90Tokens kSource = Sm90Tokens::source;                                     \
    static constexpr Sm90Sums kSums = Sm90Sums::sums;                                             \
    static constexpr uint32_t kGroups = groups;                                                   \
    static constexpr uint32_t kStages = stages;                                                   \
    static constexpr uint32_t kStagesAhead = ahead;                                               \
    static constexpr uint32_t kStagesFirst = first;                                               \
    static constexpr uint32_t kSlots = slots;                                                     \
    static constexpr uint32_t kSlotSteps = steps;                                                 \
    static constexpr uint32_t kTokenStagesAhead = early;                                          \
    static constexpr uint32_t kRowsPerPass = rows;                                                \
    static constexpr uint32_t kConsumerRegisters = consumer;                                      \
    static constexpr uint32_t kLoaderRegisters = loader;                                          \
  };
#define SM90_A16_TILE(weights, tokens, sums, groups, stages, ahead, slots, steps, rows, consumer, \
                      loader, ...)                                                                \
  SM90_WIDE_TILE(weights, tokens, natural, sums, groups, stages, ahead, ahead, slots, steps, 0,   \
                 rows, consumer, loader, 0)
#include "kernel/sm90/tiles.def"

// The same tile in the entries for gated products.
template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile, Sm90TokenType kType>
struct Sm90GatedRow;
#define SM90_GATED_TILE(weights, tokens, type, stages, rows)                        \
  template <>                                                                       \
  struct Sm90GatedRow<weights, tokens, Sm90TokenType::type>                         \
      : Sm90WideRow<weights, tokens, Sm90TokenType::type != Sm90TokenType::nvfp4> { \
    static constexpr bool kGated = true;                                            \
    static constexpr uint32_t kStages = stages;                                     \
    static constexpr uint32_t kRowsPerPass = rows;                                  \
  };
#include "kernel/sm90/tiles.def"

// The same tile in the entries for packed weights, whose tokens are natural.
template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile>
struct Sm90PackedRow;
#define SM90_PACKED_TILE(weights, tokens, stages, consumer, loader, ...)       \
  template <>                                                                  \
  struct Sm90PackedRow<weights, tokens> : Sm90WideRow<weights, tokens, true> { \
    static constexpr bool kPacked = true;                                      \
    static constexpr uint32_t kStages = stages;                                \
    static constexpr uint32_t kConsumerRegisters = consumer;                   \
    static constexpr uint32_t kLoaderRegisters = loader;                       \
  };
#include "kernel/sm90/tiles.def"

// The same in the entries for gated products of packed weights.
template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile>
struct Sm90PackedGatedRow;
#define SM90_PACKED_GATED_TILE(weights, tokens, rows)                           \
  template <>                                                                   \
  struct Sm90PackedGatedRow<weights, tokens> : Sm90PackedRow<weights, tokens> { \
    static constexpr bool kGated = true;                                        \
    static constexpr uint32_t kRowsPerPass = rows;                              \
  };
#include "kernel/sm90/tiles.def"

template <uint32_t kWeightsPerTile, uint32_t kTokensPerTile,
          Sm90TokenType kType = Sm90TokenType::nvfp4,
          typename RowOfTile =
              Sm90WideRow<kWeightsPerTile, kTokensPerTile, kType != Sm90TokenType::nvfp4>>
struct Sm90WideTile : RowOfTile {
  using Row = RowOfTile;
  using Row::kConsumerRegisters;
  using Row::kGated;
  using Row::kGroups;
  using Row::kLoaderRegisters;
  using Row::kPacked;
  using Row::kRowsPerPass;
  using Row::kSlots;
  using Row::kSlotSteps;
  using Row::kStages;
  using Row::kStagesAhead;
  using Row::kStagesFirst;
  using Row::kTokenStagesAhead;
  static constexpr uint32_t kWeights = kWeightsPerTile;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kColumnsOfD = kGated ? kWeights / 2 : kWeights;
  static constexpr uint32_t kHalves = kGated ? 2 : 1;  // of the weights: rows of b, rows of b2
  static constexpr uint32_t kCtas = 1;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr Sm90TokenType kTokenType = kType;
  static constexpr bool kDecodesTokens = Row::kSource == Sm90Tokens::decoded;
  static constexpr bool kWorkspaceTokens = Row::kSource == Sm90Tokens::workspace;
  static constexpr bool kNaturalTokens = Row::kSource == Sm90Tokens::natural;
  // UE8M0 exponents have the range of bf16.
  static constexpr bool kUe8m0Weights = kType == Sm90TokenType::bf16;
  static constexpr bool kBlockSums = false;
  // Sums of few tokens are pushed to a reserved place in the CTA that stores them.
  static constexpr bool kPushesSums = Row::kSums == Sm90Sums::pushed;
  // A single group has the complete sums of a tile, and they go from registers to D.
  static constexpr bool kWholeSums = Row::kSums == Sm90Sums::whole;
  // If sums do not pass through the rings, the CTA continues with its next tile, whose first
  // k-blocks have arrived meanwhile. Warps that decode tokens know those of one tile only; with 16
  // of them loaded two k-blocks ahead they have no registers left for more.
  static constexpr bool kSeveralTiles =
      kWholeSums || (kPushesSums && kTokens * kTokenStagesAhead < 32);
  static constexpr uint32_t kDecodingWarps = kDecodesTokens ? 3 : 0;

  static constexpr bool kPlain = false;
  static constexpr bool kLinear = false;
  static constexpr bool kMxfp4 = false;
  static constexpr bool kScaledD = false;
  static constexpr bool kFields = false;
  static constexpr bool kGrouped = false;
  static constexpr uint32_t kTokenStep = kTokens;  // rows of one token tile, as it is numbered
  static constexpr bool kStoresByTma = false;
  static constexpr uint32_t kAccumulators = 1;

  // Tiles of four groups add in one order: every fourth k-block, then the groups' sums, then those
  // of the CTAs. No other number of groups has both a tile for few tokens and one for many.
  static constexpr bool kBatchInvariant = kGroups == 4;
  static constexpr bool kAddsOwnParts = false;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr uint32_t kMaxSplit = kNaturalTokens ? 4 : 8;  // 3 and 8 need separate code

  // A warpgroup multiplies 64 weights of a k-block. Up to 64 tokens four warpgroups hide latency
  // that two would wait for. Groups that share no k-block alternate, so each has partial sums.
  static constexpr uint32_t kConsumersPerStage = kWeights / 16;
  static constexpr uint32_t kConsumerWarps = kGroups * kConsumersPerStage;
  // Partial sums of a CTA that are added to those of others: one per group with few tokens,
  // otherwise complete sums.
  static constexpr uint32_t kPartials = kPushesSums ? kGroups : 1;
  static constexpr uint32_t kStepWords = 2;  // decoded at once, of 8 in a k-block

  // Codes and scales of packed weights lie together; those in MXFP4 have fewer bytes.
  static constexpr uint32_t kWeightBytes =
      kPacked ? kWeights / kPackedRows * kSteps * kPackedUnitBytes : kWeights * kK / 2;
  static constexpr uint32_t kHalfScaleBytes = kSteps * kScaleTileBytes;  // of 128 rows
  static constexpr uint32_t kScaleBytes = kPacked ? 0 : kHalves * kHalfScaleBytes;

  // A warp's fragment has two rows of eight weights: neighbours, or of a gated product the same
  // eight of b and of b2, so that a lane has both sums of an element. From one row to the other:
  static constexpr uint32_t kWarpColumns = 16 / kHalves;  // of D, from warp to warp
  static constexpr uint32_t kWeightsApart = kGated ? kColumnsOfD : 8;
  static constexpr uint32_t kCodesApart = kWeightsApart * kK / 2;
  static constexpr uint32_t kScalesApart = kGated ? kHalfScaleBytes : 8 * 16;

  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kSubTileBytes = kTokens * kTokenRowBytes;  // 64 elements of K
  static constexpr uint32_t kSlotsPerStage = kSteps / kSlotSteps;
  static constexpr uint32_t kSlotBytes = kSlotSteps * kSubTileBytes;

  // A row of sums is 4 floats longer than the weights, so that the 8 x 4 lanes of a fragment (8
  // weights, tokens two apart) hit 32 banks.
  static constexpr uint32_t kSumRowBytes = (kWeights + 4) * 4;
  static constexpr uint32_t kPushedRows = kTokens + 2;  // for all ranks: 3 CTAs have 6 of 16 each
  static constexpr uint32_t kPushedBytes = kPushesSums ? kPartials * kPushedRows * kSumRowBytes : 0;

  // Shared memory, offsets from a 1024-byte aligned base.
  static constexpr uint32_t kTokensAt = 0;
  static constexpr uint32_t kWeightsAt = kTokensAt + kSlots * kSlotBytes;
  static constexpr uint32_t kScalesAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kWeightsFullAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kTokensFullAt = kWeightsEmptyAt + 8 * kStages;
  static constexpr uint32_t kTokensEmptyAt = kTokensFullAt + 8 * kSlots;
  static constexpr uint32_t kSumsFullAt = kTokensEmptyAt + 8 * kSlots;
  static constexpr uint32_t kKTailFullAt = kSumsFullAt + 8;
  static constexpr uint32_t kAsideAt = (kKTailFullAt + 8 + 15) / 16 * 16;
  // Rows of fp16 on the way to D: those of a whole group, or as many at once as fit beside the
  // rings.
  static constexpr uint32_t kRowsBytes = kRowsPerPass * kWeights * 2;
  static constexpr uint32_t kSharedBytes = kAsideAt + kRowsBytes + kPushedBytes;

  // The drained rings first hold the fp32 sums that groups exchange (sums/reduce.cuh), then the
  // tile's sums, fp32, [token][weight], or its rows, fp16, [token][weight]. Beside the rings there
  // is space for a tile's rows while the rings fill for the next one, or for few tokens' sums,
  // [rank][part][token of this CTA][weight].
  static constexpr uint32_t kGroupSumsBytes =
      kPushesSums ? 0 : (kGroups - 1) * kTokens * kWeights * 4;
  static constexpr uint32_t kPartialBytes = kTokens * kSumRowBytes;
  static constexpr uint32_t kSumsAt = kPushesSums ? kAsideAt : kGroupSumsBytes;
  static constexpr uint32_t kRowsAt = kWholeSums ? kAsideAt : kGroupSumsBytes;

  // The last warpgroup gives up registers. In it one warp loads weights, and one loads tokens or
  // three decode them.
  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = kDecodesTokens ? kDecodingWarps : 1;
  static constexpr uint32_t kWeightArrivals = 1;                       // per stage
  static constexpr uint32_t kTokenArrivals = kDecodesTokens ? 32 : 1;  // per slot
  static constexpr uint32_t kWarps = kConsumerWarps + 4;
  static constexpr uint32_t kThreads = 32 * kWarps;
  // Registers per thread at the start of the CTA, which its warpgroups redistribute. Registers, and
  // shared memory too, leave room for a CTA of nvfp4_tokens_sm90 that is still running; otherwise
  // the CTA would start only when that one has ended.
  static constexpr uint32_t kRegisters =
      (kRegistersPerSm - kTokenKernelThreads * kTokenKernelRegisters) / kThreads / 8 * 8;
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  // Combinations that exist (README.md).
  static_assert(kWeights == 64 || kWeights == 128);
  static_assert(kTokens >= 8 && kTokens <= 256 &&
                ((kTokens & (kTokens - 1)) == 0 || kTokens == 192));
  static_assert(kNaturalTokens == (kType != Sm90TokenType::nvfp4));
  static_assert(kNaturalTokens || kPushesSums == kDecodesTokens, "few are decoded here and pushed");
  static_assert(kPushesSums == (kTokens <= 16), "what three warps can decode");
  static_assert(kWholeSums == (kGroups == 1), "one group has the whole sums");
  static_assert(!kWholeSums || kWeights == kScaleTileRows, "a lane's place among the scales");
  static_assert(kWholeSums == (kRowsPerPass > 0), "rows beside the rings serve whole sums");
  static_assert(kDecodesTokens == (kTokenStagesAhead > 0), "loaded in advance by who decodes");

  static_assert(kConsumerWarps == (kTokens <= 64 ? 16 : 8));
  static_assert(kConsumerWarps * kConsumerRegisters + 4 * kLoaderRegisters <= kWarps * kRegisters);
  static_assert(kCtasPerSm == 1, "kRegisters are one CTA's");

  // With 64 weights a k-block has half the size, so twice as many are ahead. Before the pre-pass
  // has ended only one is requested: the more a CTA reads, the later it notices the end.
  static_assert(kStagesAhead == 256 / kWeights && kStages > kStagesAhead);
  static_assert(kStagesFirst == kStagesAhead || (kWorkspaceTokens && kStagesFirst < kStagesAhead));
  static_assert(kStages ==
                    (kMaxSharedBytes - 1024 - kSlots * kSlotBytes - kPushedBytes) / kStageBytes,
                "as many stages as fit beside the slots, the sums and 1,024 bytes of barriers");
  static_assert(kSteps % kSlotSteps == 0);
  static_assert(!kPacked || (kNaturalTokens && kSteps * kScaleTileK == kK));
  static_assert(!kPacked || !kGated || kColumnsOfD == kPackedRows, "a unit of each half");
  static_assert(kSlots > kSlotsPerStage * (kGroups - 1) + 1,
                "a slot is given back when its group's next one is in use");
  // A barrier shows only the parity of its phase, so a group must not begin to wait for a phase
  // while the previous one, for another group's k-block, is incomplete. A slot always belongs to
  // the same group. A group has used a k-block by the time that the first kGroups + kStagesAhead
  // k-blocks before its next one have arrived.
  static_assert(kGroups == 1 || kSlots % (kSlotsPerStage * kGroups) == 0);
  // All loops that fill the ring respect this by kStagesAhead.
  static_assert(kGroups == 1 || kStages >= kGroups + kStagesAhead);
  static_assert(kSubTileBytes % kSwizzlePatternBytes == 0 &&
                    kWeightBytes % kSwizzlePatternBytes == 0,
                "operand tiles start a 128-byte-swizzle pattern");
  static_assert(kPushesSums || kSumsAt + kPartialBytes <= kWeightsFullAt,
                "the sums fit the drained rings");
  static_assert(kWeightsFullAt % 8 == 0, "an mbarrier is 8-byte aligned");
  static_assert(kSharedBytes <= kMaxSharedBytes - (kWorkspaceTokens ? kReservedSharedBytes : 0));
};

}  // namespace nvfp4
