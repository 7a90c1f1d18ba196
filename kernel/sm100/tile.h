// SPDX-License-Identifier: MIT
// Tile constants of the sm_100a kernel, derived from the hardware's limits. The planner reads them
// too: plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/group_list.h"
#include "kernel/common/hardware.h"
#include "kernel/common/host_device.h"
#include "kernel/common/scale_tile.h"
#include "kernel/sm100/shared.h"

namespace nvfp4 {

// Whether a tcgen05.cp takes effect after the earlier tcgen05.mma of its thread. The PTX ISA does
// not promise it (9.7.16.6.2), so the emulator has a formal finding, reused_columns. Public kernels
// rely on it on a B200: CUTLASS's mainloop for NVFP4, DeepGEMM and MegaMoE copy the scales of each
// k tile to the same columns without a wait in between. So the accumulators of the 256x256 tile
// overlap (docs/model.md). With 0 that tile has one. `nvfp4_probes mma_before_cp_pair` asks a GPU.
#ifndef NVFP4_MMA_BEFORE_CP
#define NVFP4_MMA_BEFORE_CP 1
#endif

// Whether a CTA initialises all barriers before its first load. With 0 it initialises one, issues
// the loads that signal it, and initialises the others while these loads are in flight, which is 30
// % of the way to the first load. `nvfp4_probes fence_in_flight` asks a GPU whether the fence that
// follows waits for loads in flight; then 1 is the better choice.
#ifndef NVFP4_ALL_BARRIERS_FIRST
#define NVFP4_ALL_BARRIERS_FIRST 0
#endif

// A multiple of which an MMA's N is. The PTX ISA permits 8 for M = 128, but public kernels take
// multiples of 16. Rows beyond M cost next to nothing. `nvfp4_probes n_multiple_of_8` asks a GPU.
constexpr uint32_t kTokenStep = 16;

// kCtas CTAs, one or a pair, compute kWeights x kTokens elements of D^T. The weights (B) are the
// MMA's A operand, since a block-scaled MMA has M = 128 for each CTA and the number of tokens is
// what varies. Each CTA of a pair loads and stores its own 128 weights. Each loads one half of the
// tokens, and the MMA reads both halves. Both CTAs load the scales of all tokens.
//
// In the entry for gated products (gated.cuh) a CTA has two matrices of weights, one from b and one
// from b2, and an accumulator for each.
//
// In the entries for grouped products (common/group_list.cuh) the rows of a group begin anywhere,
// and a token tile is numbered by its first row. K is unsplit. Threads store D, since a box would
// write rows of the next group.
template <uint32_t kTokensPerTile, uint32_t kCtasOfTile = 1, bool kGatedTile = false,
          bool kGroupedTile = false>
struct Sm100Tile {
  static constexpr bool kGated = kGatedTile;
  static constexpr bool kGrouped = kGroupedTile;
  static constexpr uint32_t kMatrices = kGated ? 2 : 1;
  static constexpr uint32_t kCtas = kCtasOfTile;
  static constexpr uint32_t kCtaWeights = 128;
  static constexpr uint32_t kWeights = kCtas * kCtaWeights;
  static constexpr uint32_t kColumnsOfD = kWeights;
  static constexpr uint32_t kTokens = kTokensPerTile;
  static constexpr uint32_t kCtaTokens = kTokens / kCtas;
  static constexpr uint32_t kK = 256;             // per stage: 128 bytes a row, one swizzle span
  static constexpr uint32_t kSteps = kK / kMmaK;  // MMAs per stage
  static constexpr bool kBatchInvariant = true;   // with unsplit K every tile adds step after step

  static constexpr uint32_t kTokenScaleBlocks = (kTokens + kScaleTileRows - 1) / kScaleTileRows;
  static constexpr uint32_t kWeightBytes = kCtaWeights * kK / 2;
  static constexpr uint32_t kTokenBytes = kCtaTokens * kK / 2;
  static constexpr uint32_t kWeightScaleBytes = kSteps * kScaleTileBytes;
  static constexpr uint32_t kTokenScaleBytes = kTokenScaleBlocks * kSteps * kScaleTileBytes;
  static constexpr uint32_t kMatrixBytes = kWeightBytes + kWeightScaleBytes;  // of a stage
  static constexpr uint32_t kStageWeightBytes = kMatrices * kWeightBytes;
  static constexpr uint32_t kStageWeightScaleBytes = kMatrices * kWeightScaleBytes;
  static constexpr uint32_t kStageBytes =
      kStageWeightBytes + kTokenBytes + kStageWeightScaleBytes + kTokenScaleBytes;

  // Rows of a box of tokens in each CTA. If one tile covers M these are the tokens that exist,
  // rounded up to kTokenStep in all CTAs. So few rows beyond M are loaded, and the MMA reads only
  // rows that a copy has written.
  static NVFP4_HOST_DEVICE constexpr uint32_t box_tokens(uint32_t m) {
    return m < kTokens ? (m + kTokenStep - 1) / kTokenStep * (kTokenStep / kCtas) : kCtaTokens;
  }

  // Tensor memory lanes 32w to 32w+31 belong to warps with warp % 4 == w. Each such lane band has
  // two epilogue warps, which take turns.
  static constexpr uint32_t kHalves = 2;
  static constexpr uint32_t kEpilogueWarps = 4 * kHalves;

  // A pair, or a CTA of a grouped product, computes one tile after the other. Its ring continues
  // from tile to tile. So the epilogue has staging buffers outside the ring, as large as the stages
  // leave room for (boxes.cuh). A list of groups leaves less.
  static constexpr bool kSeveralTiles = kCtas == 2 || kGrouped;
  static constexpr uint32_t kWarpStagingBytes = kGrouped         ? 2048 * kMatrices
                                                : kTokens == 256 ? 4096
                                                                 : 3072;
  static constexpr uint32_t kStagingBytes = kSeveralTiles ? kEpilogueWarps * kWarpStagingBytes : 0;
  static constexpr uint32_t kListBytes = kGrouped ? uint32_t(sizeof(GroupListMemory)) : 0;

  // As many stages as fit. The size of the barriers is computed for the number of stages that would
  // fit without them.
  static constexpr uint32_t kStages =
      (kMaxSharedBytes - kStagingBytes - kListBytes -
       uint32_t(sizeof(Sm100Barriers<kMaxSharedBytes / kStageBytes, kSeveralTiles>))) /
      kStageBytes;

  // Shared memory, offsets from a 1024-byte aligned base.
  using Ring = Sm100Ring<Sm100Tile, kStages>;
  using Barriers = Sm100Barriers<kStages, kSeveralTiles>;
  static constexpr uint32_t kStagingAt = kStages * kStageBytes;
  static constexpr uint32_t kListAt = kStagingAt + kStagingBytes;
  static constexpr uint32_t kBarriersAt = kListAt + kListBytes;
  static constexpr uint32_t kSharedBytes = kBarriersAt + uint32_t(sizeof(Barriers));

  // Columns of tensor memory: accumulators, then scale slots, one per stage and step. A slot for
  // each stage keeps a tcgen05.cp from overwriting scales that an MMA may still read. All known
  // hardware keeps that order, but no document promises it (PTX ISA 9.7.16.6.2).
  static constexpr uint32_t kWeightScaleColumns = kScaleTileColumns;
  static constexpr uint32_t kTokenScaleColumns = kTokenScaleBlocks * kScaleTileColumns;
  static constexpr uint32_t kStepColumns = kMatrices * kWeightScaleColumns + kTokenScaleColumns;
  // Two accumulators that overlap leave only columns for the scales of one stage.
  static constexpr bool kOverlap = NVFP4_MMA_BEFORE_CP && kSeveralTiles && kTokens == 256;
  static constexpr uint32_t kScaleStages = kOverlap ? 1 : kStages;
  static constexpr uint32_t kScaleColumns = kScaleStages * kSteps * kStepColumns;
  // There are two accumulators if they fit, so that one tile is stored while the next accumulates.
  static constexpr uint32_t kSumColumns = kMatrices * kTokens;
  static constexpr uint32_t kAccumulators =
      kSeveralTiles && (kOverlap || 2 * kSumColumns + kScaleColumns <= kTmemColumns) ? 2 : 1;
  // First column of the second accumulator. Columns from there to kTokens belong to both, so the
  // next tile waits until the epilogue has read them. It reads them first.
  static constexpr uint32_t kSecondAt =
      kOverlap ? kTmemColumns - kScaleColumns - kTokens : kSumColumns;
  static constexpr uint32_t kReleasingIterations = kOverlap ? 1 : kAccumulators;
  static constexpr uint32_t kScaleColumnsAt = kSumColumns + (kAccumulators - 1) * kSecondAt;
  static constexpr uint32_t kColumnsUsed = kScaleColumnsAt + kScaleColumns;
  static constexpr uint32_t kColumnsAllocated = kColumnsUsed <= 256 ? 256 : 512;

  // Two warps feed the tensor core, and eight drain it.
  static constexpr uint32_t kProducerWarp = 0;
  static constexpr uint32_t kMmaWarp = 1;
  static constexpr uint32_t kFirstEpilogueWarp = 2;
  static constexpr uint32_t kWarps = kFirstEpilogueWarp + kEpilogueWarps;
  static constexpr uint32_t kThreads = 32 * kWarps;
  static constexpr int kCtaGroup = int(kCtas);  // CTAs that one tcgen05.mma works for
  // D is stored by TMA if its layout permits, otherwise by threads. With few tokens a warp has two
  // boxes, and nothing to convert while the second is stored. TMA then only takes longer, as others
  // have measured on a B200 (docs/notebook.md).
  static constexpr bool kStoresByTma = kTokens >= 128 && !kGated && !kGrouped;

  // A pair always initialises all barriers first: either CTA signals those of the other.
  static constexpr bool kAllBarriersFirst = NVFP4_ALL_BARRIERS_FIRST || kCtas == 2;

  static constexpr uint32_t kCtasPerSm = 1;
  static constexpr bool kWorkspaceTokens = false;
  static constexpr bool kUe8m0Weights = true;  // and tokens
  // K partitions: 1, 2 or 4. Pairs are for problems that fill the machine without split-K.
  static constexpr uint32_t kMaxSplit =
      kTokens <= 128 && kCtas == 1 && !kGated && !kGrouped ? 4 : 1;
  static constexpr uint32_t kDecodingWarps = 0;

  static_assert(!kGated || kCtas == 1);
  static_assert(kCtas == 1 || (kCtas == 2 && kTokens >= 128), "a pair has 64 tokens each, or more");
  static_assert(kTokens == 64 || kTokens == 128 || kTokens == 256,
                "widths with a known scale column");
  // 64 to 128 KB in flight per SM saturate a B200's DRAM (public TMA micro-benchmark, 7.2 TB/s).
  static_assert(kStages * kStageBytes >= 128 * 1024);
  static_assert(kMatrixBytes % kSwizzlePatternBytes == 0 && kTokenBytes % kSwizzlePatternBytes == 0,
                "operand tiles start a 128-byte-swizzle pattern");
  static_assert(kBarriersAt % 8 == 0, "an mbarrier is 8-byte aligned");
  static_assert(kSharedBytes <= kMaxSharedBytes);
  static_assert(kColumnsUsed <= kTmemColumns);
  static_assert(!kOverlap || kSecondAt == 208, "as docs/model.md has it");
  static_assert(kCtas == 1 || kColumnsAllocated == kTmemColumns,
                "both CTAs of a pair have all columns, so what its MMA writes has one address");
  static_assert(kScaleColumnsAt % 2 == 0 && kStepColumns % 2 == 0 && kWeightScaleColumns % 2 == 0,
                "scales at an odd tensor memory column fault");
  static_assert(kMmaWarp < kFirstEpilogueWarp);
  static_assert(kStageBytes <= kMaxTransactionBytes);
};

#define SM100_TILE(weights, tokens) \
  using Sm100Tile_##weights##x##tokens = Sm100Tile<tokens, weights / 128>;
#include "kernel/sm100/tiles.def"

// A tile in the entries for gated and for grouped products.
template <typename Tile>
using Sm100Gated = Sm100Tile<Tile::kTokens, Tile::kCtas, true, Tile::kGrouped>;
template <typename Tile>
using Sm100Grouped = Sm100Tile<Tile::kTokens, Tile::kCtas, Tile::kGated, true>;

// What each operation (kernel/common/operations.h) makes of a tile, whether its entry has the
// general epilogue, and whether D has scales.
template <typename TileOfEntry, bool kGeneralEpilogue, bool kScalesOfD>
struct Sm100Entry : TileOfEntry {
  using Tile = TileOfEntry;
  static constexpr bool kGeneral = kGeneralEpilogue;
  static constexpr bool kScales = kScalesOfD;
};
template <typename Tile>
using Sm100_any = Sm100Entry<Tile, true, false>;
template <typename Tile>
using Sm100_plain = Sm100Entry<Tile, false, false>;
template <typename Tile>
using Sm100_scaled = Sm100Entry<Tile, true, true>;
template <typename Tile>
using Sm100_grouped = Sm100Entry<Sm100Grouped<Tile>, true, true>;
template <typename Tile>
using Sm100_grouped_plain = Sm100Entry<Sm100Grouped<Tile>, false, false>;
template <typename Tile>
using Sm100_gated = Sm100Entry<Sm100Gated<Tile>, true, false>;
template <typename Tile>
using Sm100_grouped_gated = Sm100Entry<Sm100Grouped<Sm100Gated<Tile>>, true, false>;

}  // namespace nvfp4
