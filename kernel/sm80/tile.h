// SPDX-License-Identifier: MIT
// Sizes of the mma.sync kernels, and the layout of a stage. Plain C++, no CUDA.
//
// A warp multiplies all 64 weights of its CTA's tile by all tokens for one k-block at a time, and
// has a ring of its own, so that warps never wait for each other before the sums are added.
//
//   a stage   codes    64 rows of 64 bytes
//             scales   64 rows of 8 bytes
//             tokens   a row of 256 bytes for each token of the tile that exists, in pieces of 16
//                      bytes; the piece j of row r lies at j ^ sm80_token_swizzle(j / 8, r)
#pragma once

#include <cstdint>

#include "kernel/common/host_device.h"
#include "kernel/common/packed.h"

namespace nvfp4 {

constexpr uint32_t kSm80BlockK = 128;                    // elements of K in a k-block
constexpr uint32_t kSm80Weights = 64;                    // weights of a tile
constexpr uint32_t kSm80HalfWeights = kSm80Weights / 2;  // in a gated tile: of b, and of b2

constexpr uint32_t kSm80CodeRowBytes = kSm80BlockK / 2;
constexpr uint32_t kSm80CodeBytes = kSm80Weights * kSm80CodeRowBytes;
constexpr uint32_t kSm80ScaleRowBytes = kSm80BlockK / 16;
constexpr uint32_t kSm80ScaleBytes = kSm80Weights * kSm80ScaleRowBytes;
constexpr uint32_t kSm80TokenRowBytes = kSm80BlockK * 2;
constexpr uint32_t kSm80ZeroBytes = 128;  // zeros for lanes whose token does not exist
constexpr uint32_t kSm80RingsAt = 256;    // after the zeros and the barrier of a cluster's sums

// From the sums of a token to those of the next: 68 floats, so that a warp's lanes hit 32 banks.
constexpr uint32_t kSm80SumRowBytes = (kSm80Weights + 4) * 4;

// Eight lanes that read together, at four places of K of two tokens, must hit eight different
// banks. So the place of a piece within its line of 128 bytes depends on the line and on the row.
NVFP4_HOST_DEVICE constexpr uint32_t sm80_token_swizzle(uint32_t line, uint32_t row) {
  return line + row % 2 * 2;
}

// The same beside packed weights: eight rows of a matrix (ldmatrix) hit eight different banks.
NVFP4_HOST_DEVICE constexpr uint32_t sm80_packed_token_swizzle(uint32_t row) { return row % 8; }

// For a tile of which `rows` tokens exist.
NVFP4_HOST_DEVICE constexpr uint32_t sm80_stage_bytes(uint32_t rows) {
  return kSm80CodeBytes + kSm80ScaleBytes + rows * kSm80TokenRowBytes;
}

// Tokens of a tile that exist: every tile has room for as many as the first one has.
NVFP4_HOST_DEVICE constexpr uint32_t sm80_token_rows(uint32_t m, uint32_t tile_tokens) {
  return m < tile_tokens ? m : tile_tokens;
}

constexpr uint32_t kSm80MostCluster = 8;  // the largest cluster that every 9.0 runs

constexpr uint32_t kSm80Stages = 2;  // stages of a warp's ring

// Where the sums of a cluster's K partitions meet in its first CTA. With 16 tokens and four warps
// they meet in the rings, once that CTA has read these, so that three CTAs fit on an SM. The other
// tiles have room beside the rings, and no partition waits for the first one.
NVFP4_HOST_DEVICE constexpr bool sm80_partitions_in_rings(uint32_t tile_tokens, uint32_t warps) {
  return tile_tokens > 8 && warps == 4;
}

// `cluster` is the number of CTAs of a cluster; 1 if K partitions meet in the workspace.
NVFP4_HOST_DEVICE constexpr uint32_t sm80_shared_bytes(uint32_t tile_tokens, uint32_t warps,
                                                       uint32_t m, uint32_t cluster) {
  const uint32_t rows = sm80_token_rows(m, tile_tokens);
  const bool beside = cluster > 1 && !sm80_partitions_in_rings(tile_tokens, warps);
  return kSm80RingsAt + warps * kSm80Stages * sm80_stage_bytes(rows) +
         (beside ? cluster * rows * kSm80SumRowBytes : 0);
}

// Each of the kTileWarps warps multiplies every kTileWarps-th k-block. Eight are faster if few
// tiles share the SMs; otherwise four are.
template <uint32_t kTileTokens, uint32_t kTileWarps, bool kOfGroups = false>
struct Sm80Tile {
  static constexpr bool kGrouped = kOfGroups;
  static constexpr uint32_t kWeights = kSm80Weights;
  static constexpr uint32_t kTokens = kTileTokens;
  static constexpr uint32_t kWarps = kTileWarps;
  static constexpr uint32_t kStages = kSm80Stages;
  static constexpr uint32_t kThreads = 32 * kWarps;
  // Only one tile, in the images without clusters and beside bf16 tokens, has the loop for UE8M0
  // scales, which is as large as the one for UE4M3 scales. Every GPU of those images has room for
  // that tile, and tokens that do not exist take no shared memory.
  static constexpr bool kUe8m0Weights = kWarps == 4 && kTokens == 16;
  // The register file is divided among this many warps of an SM.
  static constexpr uint32_t kWarpsPerSm = kWarps == 4 ? 12 : kTokens > 8 ? 8 : 16;
  static constexpr uint32_t kCtasPerSm = kWarpsPerSm / kWarps;

  static constexpr uint32_t shared_bytes(uint32_t m, uint32_t cluster) {
    return sm80_shared_bytes(kTokens, kWarps, m, cluster);
  }
  static_assert(kTokens % 8 == 0, "the columns of an MMA");
  // The sums of a warp overwrite its ring; those of the cluster's K partitions come after them.
  static constexpr bool kPartitionsInRings = sm80_partitions_in_rings(kTokens, kWarps);
  static constexpr uint32_t kWarpSumBytes = kTokens * kSm80SumRowBytes;
  static constexpr uint32_t kPartitionsOfRing = kPartitionsInRings ? kSm80MostCluster / kWarps : 0;
  static constexpr bool sums_fit(uint32_t rows) {
    return kWarpSumBytes + kPartitionsOfRing * rows * kSm80SumRowBytes <=
           kStages * sm80_stage_bytes(rows);
  }
  static_assert(sums_fit(1) && sums_fit(kTokens));
  static_assert(kSm80MostCluster % kWarps == 0);
};

// Type of the tokens.
enum class Sm80Type { f16, bf16 };

// An mma.sync tile for a type of tokens, with the members that other families' tiles have. Its
// stages are those of all warps' rings together.
template <uint32_t kTokens, uint32_t kWarps, Sm80Type kTokenType, bool kGrouped = false>
struct Sm80Variant : Sm80Tile<kTokens, kWarps, kGrouped> {
  static constexpr Sm80Type kType = kTokenType;
  static constexpr bool kPacked = false;
  using Tile = Sm80Tile<kTokens, kWarps, kGrouped>;
  static constexpr uint32_t kK = kSm80BlockK;
  static constexpr uint32_t kCtas = 1;
  static constexpr uint32_t kStages = kWarps * Tile::kStages;
  static constexpr uint32_t kStageBytes = sm80_stage_bytes(kTokens);
  static constexpr uint32_t kSharedBytes = Tile::shared_bytes(kTokens, 1);
  static constexpr uint32_t kColumnsOfD = kSm80Weights;
  static constexpr uint32_t kColumnsAllocated = 0;
  static constexpr bool kWorkspaceTokens = false;
  static constexpr bool kBatchInvariant = kWarps == 4;  // the bits follow from the number of warps
  static constexpr bool kStoresByTma = false;
  static constexpr bool kSeveralTiles = false;
  static constexpr uint32_t kAccumulators = 1;
  static constexpr uint32_t kDecodingWarps = 0;
  static constexpr uint32_t kMaxSplit = kSm80MostCluster;
};
#define SM80_TILE(tokens, warps)                                                        \
  using Sm80Tile_f16_64x##tokens##w##warps = Sm80Variant<tokens, warps, Sm80Type::f16>; \
  using Sm80Tile_bf16_64x##tokens##w##warps = Sm80Variant<tokens, warps, Sm80Type::bf16>;
#include "kernel/sm80/tiles.def"

// What an operation (kernel/common/operations.h) makes of a tile.
template <typename Tile>
using Sm80_any = Tile;
template <typename Tile>
using Sm80_grouped = Sm80Variant<Tile::kTokens, Tile::kWarps, Tile::kType, true>;
// The same kernel. A tile has half as many columns of D.
template <typename Tile>
struct Sm80_grouped_gated : Sm80_grouped<Tile> {
  static constexpr uint32_t kColumnsOfD = kSm80HalfWeights;
};
// A stage has as many bytes of packed weights as of others.
template <typename Tile>
struct Sm80_packed : Tile {
  static constexpr bool kPacked = true;
};
template <typename Tile>
using Sm80_packed_grouped = Sm80_packed<Sm80_grouped<Tile>>;
static_assert(kSm80BlockK / kPackedK * kPackedUnitBytes == kSm80CodeBytes + kSm80ScaleBytes &&
              kSm80Weights == kPackedRows);

}  // namespace nvfp4
