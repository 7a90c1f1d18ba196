// SPDX-License-Identifier: MIT
// Tile constants of the sm_90a kernel, derived from the hardware's limits. The planner reads them
// too: plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "gemm_params.h"

namespace nvfp4 {

// One CTA (of `split` that share a tile along K) computes kWeights x kTokens elements of D^T. The
// weights (B) are decoded into registers, as the A operand of the tensor core; stages of 256
// elements of K, packed codes and their scale tiles, come through a ring. Offsets into shared memory
// are from a 1024-byte aligned base.
//
// Narrow tiles, up to 16 tokens: mma.sync. The tokens (A) are decoded by warps of the CTA itself,
// into the same stages, as fragments in the order in which the consumer warps' lanes read them.
template <uint32_t kTokensPerTile>
struct Sm90NarrowTile {
  static constexpr uint32_t kWeights = 128;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kTokenBlocks = kTokens / 8;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr bool kWorkspaceTokens = false;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr uint32_t kStages = kTokens == 8 ? 9 : 6;

  static constexpr uint32_t kWeightBytes = kWeights * kK / 2;
  static constexpr uint32_t kScaleBytes = kSteps * kScaleTileBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kFragmentBytes = kTokenBlocks * 512;  // word j of the lanes' chunks
  static constexpr uint32_t kTokenBytes = 8 * kFragmentBytes;

  static constexpr uint32_t kWeightsAt = 0;
  static constexpr uint32_t kTokensAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kScalesAt = kTokensAt + kStages * kTokenBytes;
  static constexpr uint32_t kWeightsFullAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kSharedBytes = kWeightsEmptyAt + 8 * kStages;

  // Eight consumer warps work on a stage, 32 rows and half of K each; the groups take turns. So the
  // sums come in parts, which lie in the drained ring in fp32, [part][token][weight]. Rows are 4
  // floats longer than 128: 8 weights x 4 tokens two apart hit 32 banks.
  static constexpr uint32_t kConsumersPerStage = 8;
  static constexpr uint32_t kGroups = 2;
  static constexpr uint32_t kConsumerWarps = 8 * kGroups;
  static constexpr uint32_t kParts = 2 * kGroups;
  static constexpr uint32_t kSumRowBytes = (kWeights + 4) * 4;
  static constexpr uint32_t kPartBytes = kTokens * kSumRowBytes;
  static constexpr uint32_t kSumsAt = 0;

  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = 3;
  static constexpr uint32_t kWarps = kFirstTokenWarp + kTokenWarps;
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  static_assert(kTokens == 8 || kTokens == 16);
  static_assert(kParts * kPartBytes <= kWeightsFullAt, "the sums fit the drained rings");
  static_assert(kWeightsFullAt % 8 == 0, "an mbarrier is 8-byte aligned");
  static_assert(kSharedBytes <= 232448);
};

// Wide tiles: wgmma. The tokens are its B operand, fp16, which nvfp4_tokens_sm90 put into the
// workspace just before. They have a ring of their own:
//   slots of kSlotSteps 64-wide slabs: fp16, 128-byte rows with the 128-byte swizzle
template <uint32_t kTokensPerTile>
struct Sm90WideTile {
  static constexpr uint32_t kWeights = 128;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kK = kSm90StageK;
  static constexpr uint32_t kSteps = kK / kScaleTileK;
  static constexpr bool kWorkspaceTokens = true;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr uint32_t kStages = kTokens == 64 ? 6 : kTokens == 128 ? 5 : 3;
  static constexpr uint32_t kSlotSteps = kTokens <= 128 ? 2 : 1;
  static constexpr uint32_t kSlots = kTokens == 64 ? 6 : kTokens == 128 ? 4 : 5;

  static constexpr uint32_t kPartWords = 2;  // decoded at once, of 8 in a stage

  static constexpr uint32_t kWeightBytes = kWeights * kK / 2;
  static constexpr uint32_t kScaleBytes = kSteps * kScaleTileBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kScaleBytes;
  static constexpr uint32_t kSlabBytes = kTokens * kTokenRowBytes;  // 64 elements of K
  static constexpr uint32_t kSlotBytes = kSlotSteps * kSlabBytes;

  // Shared memory, offsets from a 1024-byte aligned base.
  static constexpr uint32_t kTokensAt = 0;
  static constexpr uint32_t kWeightsAt = kTokensAt + kSlots * kSlotBytes;
  static constexpr uint32_t kScalesAt = kWeightsAt + kStages * kWeightBytes;
  static constexpr uint32_t kWeightsFullAt = kScalesAt + kStages * kScaleBytes;
  static constexpr uint32_t kWeightsEmptyAt = kWeightsFullAt + 8 * kStages;
  static constexpr uint32_t kTokensFullAt = kWeightsEmptyAt + 8 * kStages;
  static constexpr uint32_t kTokensEmptyAt = kTokensFullAt + 8 * kSlots;
  static constexpr uint32_t kSharedBytes = kTokensEmptyAt + 8 * kSlots;

  // The drained rings hold the tile's sums in fp32, [token][weight]. Rows are 4 floats longer than
  // 128, so that the 8 x 4 lanes of a fragment (8 weights, tokens two apart) hit 32 banks.
  static constexpr uint32_t kSumRowBytes = (kWeights + 4) * 4;
  static constexpr uint32_t kPartBytes = kTokens * kSumRowBytes;
  static constexpr uint32_t kSumsAt = 0;

  // Two warpgroups multiply, 64 weights each; in the third a warp loads weights and one loads tokens,
  // and gives up registers for 128 sums and the operands of two parts.
  static constexpr uint32_t kConsumersPerStage = 8;
  static constexpr uint32_t kConsumerWarps = 8;
  static constexpr uint32_t kParts = 1;
  static constexpr uint32_t kWeightWarp = kConsumerWarps;
  static constexpr uint32_t kFirstTokenWarp = kWeightWarp + 1;
  static constexpr uint32_t kTokenWarps = 1;
  static constexpr uint32_t kWarps = 12;
  static constexpr uint32_t kConsumerRegisters = 232, kLoaderRegisters = 40;
  static_assert(8 * kConsumerRegisters + 4 * kLoaderRegisters <= 65536 / 32);
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr uint32_t kColumnsAllocated = 0;  // there is no tensor memory

  static_assert(kTokens >= 64 && kTokens <= 256 && (kTokens & (kTokens - 1)) == 0);
  static_assert(kSlots >= 2, "a slot is given back when the next one is in use");
  static_assert(kSlabBytes % 1024 == 0 && kWeightBytes % 1024 == 0,
                "operand tiles start a 128-byte-swizzle pattern");
  static_assert(kTokens * kSumRowBytes <= kWeightsFullAt, "the sums fit the drained rings");
  static_assert(kWeightsFullAt % 8 == 0, "an mbarrier is 8-byte aligned");
  static_assert(kSharedBytes <= (kCtasPerSm == 2 ? 115712 : 232448),
                "228 KB per SM, of which each CTA costs 1 KB more");
};

}  // namespace nvfp4
