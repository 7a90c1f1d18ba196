// SPDX-License-Identifier: MIT
// The argument of the sm_90a kernels, and constants about tokens in the workspace that host and
// kernels share. Plain C++, no CUDA.
#pragma once

#include "kernel/common/gate.h"
#include "kernel/common/groups.h"
#include "kernel/common/operand_format.h"
#include "kernel/common/packed.h"
#include "kernel/common/params.h"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

constexpr uint32_t kSm90StageK = 256;  // split-K and padding use multiples of this
// Tiles of at least this many tokens load 16-bit tokens in boxes with no more rows than there are
// tokens, and so does every tile of packed weights.
constexpr uint32_t kTokensOfClippedBox = 64;
NVFP4_HOST_DEVICE constexpr bool clips_box(uint32_t tile_tokens, bool packed) {
  return packed || tile_tokens >= kTokensOfClippedBox;
}
// Number of token rows in a TMA box of a grouped product. Several small boxes fill a tile, so that
// a group with few rows loads few rows of other groups and few zeros for rows beyond M.
NVFP4_HOST_DEVICE constexpr uint32_t rows_of_grouped_box(uint32_t tile_tokens) {
  return tile_tokens <= 32 ? 8 : 64;
}
constexpr uint32_t kTokenRowBytes = 128;  // one token of a sub-tile: 64 elements in fp16
constexpr uint32_t kTokenKernelThreads = 128;
constexpr uint32_t kTokenKernelRows = 16;  // rows per CTA
constexpr uint32_t kTokenKernelRegisters = 32;
constexpr uint32_t kTokenKernelCtasPerSm = 8;       // that decode rows of groups
constexpr uint32_t kGroupTokensSharedBytes = 1024;  // of such a CTA, as ptxas aligns them
constexpr uint32_t kSm90MostEvenParts = 4;          // of a tile of even shares
constexpr uint32_t kSm90NonceShift = 16;       // in a word of arrivals, above the mask of parts
constexpr uint32_t kTokenUnitBytes = 512;      // 256 elements of a token in fp16

struct Sm90Params {
#include "kernel/common/params.def"
  const uint8_t* token_codes;
  int64_t token_row_bytes, token_batch_bytes;
  void* token_sub_tiles;  // fp16 tokens, in the caller's workspace or packed (tokens_kernel.cuh)
  uint32_t whole_tiles;   // with split-K: the first tiles, which one CTA computes alone
  uint32_t batches;  // members up to here are read before the first load: one line of constants
  EpilogueParams epilogue;
  uint16_t weight_scales_linear;  // 1: row after row; otherwise 128x4 tiles
  uint8_t token_scales_linear;
  uint8_t weight_format;  // an OperandFormatNumber
  uint32_t decoded_rows;  // M; of groups the rows that the workspace holds (group_tokens.cuh)
  uint32_t last_tile_rows;  // of the last token tile, if not grouped
  // Even shares (sums/even.cuh); even_each is 0 if there are none. The tiles from whole_tiles on
  // have their k-blocks counted on from tile to tile. Each CTA takes even_each of them, and the
  // first even_more CTAs one more.
  uint32_t even_each, even_more;
  int64_t sub_tiles_batch_bytes;  // 0: all batches have the same tokens
  // Parts of K that a CTA adds alone, in the order in which a cluster of so many CTAs with tiles of
  // four groups adds them (sums/parts.cuh). 0 where the entry has none.
  uint32_t own_parts;
  // In the caller's workspace: sums of parts, [share and tile][8 tokens][thread][4], or with own
  // parts [CTA][8 tokens][thread][4]; and for each tile of even shares a word that says which of
  // its parts have arrived.
  float* parts;
  uint64_t* arrivals;
  uint64_t nonce;  // of this run, shifted to its place in a word
};
NVFP4_CHECK_PARAMS(Sm90Params, 640);
static_assert(NVFP4_OFFSET_IS(Sm90Params, token_sub_tiles, 368) &&
              NVFP4_OFFSET_IS(Sm90Params, whole_tiles, 376));
static_assert(NVFP4_OFFSET_IS(Sm90Params, epilogue, 384) &&
              NVFP4_OFFSET_IS(Sm90Params, token_scales_linear, 554));

// The argument of the entries for grouped products. In `gemm` batches are groups; A, C and D have
// no batches: their strides are 0.
struct Sm90GroupedParams {
  Sm90Params gemm;
  GroupParams groups;
};
static_assert(NVFP4_OFFSET_IS(Sm90GroupedParams, groups, sizeof(Sm90Params)));

// The argument of the entries for gated products, grouped or not. The boxes of both maps of weights
// have the rows of half a tile. Everything that b2 does not have itself is the same as for b.
struct Sm90GatedParams {
  Sm90Params gemm;
  GroupParams groups;  // where Sm90GroupedParams has them
  TensorMap weights2;
  const uint8_t* weight_scales2;
  GateParams gate;
};
static_assert(NVFP4_OFFSET_IS(Sm90GatedParams, groups, sizeof(Sm90Params)) &&
              NVFP4_OFFSET_IS(Sm90GatedParams, weights2, 768) &&
              NVFP4_OFFSET_IS(Sm90GatedParams, gate, 904));

// The argument of an entry, by what it computes, and the common part of it.
template <bool kGrouped, bool kGated>
struct Sm90Argument {
  using Params = Sm90GatedParams;
};
template <>
struct Sm90Argument<false, false> {
  using Params = Sm90Params;
};
template <>
struct Sm90Argument<true, false> {
  using Params = Sm90GroupedParams;
};
NVFP4_HOST_DEVICE constexpr const Sm90Params& gemm_of(const Sm90Params& p) { return p; }
NVFP4_HOST_DEVICE constexpr const Sm90Params& gemm_of(const Sm90GroupedParams& p) { return p.gemm; }
NVFP4_HOST_DEVICE constexpr const Sm90Params& gemm_of(const Sm90GatedParams& p) { return p.gemm; }

}  // namespace nvfp4
