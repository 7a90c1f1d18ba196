// SPDX-License-Identifier: MIT
// The tiles of the sm_90a kernel by name, made from the rows of tiles.def. The planner reads them
// too: plain C++, no CUDA.
//
// A CTA (of `split` CTAs that share a tile along K) computes tiles of kWeights x kTokens elements
// of D^T, only one unless kSeveralTiles. The weights (B) are decoded into registers as the A
// operand of the tensor core. K-blocks of 256, packed codes and their scale tiles, come through a
// ring.
//
// kStagesAhead: at first only a part of the ring is loaded. With many k-blocks requested by all
// CTAs, memory would deliver the last as soon as the first, and nothing would be multiplied until
// then.
#pragma once

#include "kernel/sm90/tiny/tile.h"
#include "kernel/sm90/wide/tile.h"

namespace nvfp4 {

#define SM90_TINY_TILE(weights, tokens, ...) \
  using Sm90Tile_##weights##x##tokens = Sm90TinyTile<tokens>;
#define SM90_WIDE_TILE(weights, tokens, ...) \
  using Sm90Tile_##weights##x##tokens = Sm90WideTile<weights, tokens>;
#define SM90_A16_TILE(weights, tokens, ...)                                                    \
  using Sm90Tile_f16_##weights##x##tokens = Sm90WideTile<weights, tokens, Sm90TokenType::f16>; \
  using Sm90Tile_bf16_##weights##x##tokens = Sm90WideTile<weights, tokens, Sm90TokenType::bf16>;
#include "kernel/sm90/tiles.def"

// A tile in the fast entry: D in fp16 or bf16 by rows, computed from the sum and the column's terms
// (tensor scales and a bias); scales in 128x4 tiles, K a multiple of 64. Other features cost code,
// registers and branches that such a product does not need: with them it took 2 % longer, 7 % with
// 8 tokens (docs/notebook.md).
template <typename Tile>
struct Sm90Plain : Tile {
  static constexpr bool kPlain = true;
};

// A tile of many tokens in the entry for batch-invariant products that are plain otherwise. Its
// CTAs add own parts (cta.cuh), whose sums take registers that loaders do not need.
template <typename Tile>
struct Sm90Invariant : Sm90Plain<Tile> {
  static constexpr bool kAddsOwnParts = true;
  static constexpr uint32_t kConsumerRegisters = Tile::kConsumerRegisters + 8;
  static constexpr uint32_t kLoaderRegisters = Tile::kLoaderRegisters - 8;
  static_assert(Tile::kWholeSums && Tile::kTokens == 128, "registers for twice the sums");
};

// The same for NVFP4 operands of which one or both have linear scales.
template <typename Tile>
struct Sm90Linear : Sm90Plain<Tile> {
  static constexpr bool kLinear = true;
};

// The same for weights in MXFP4, where tokens are bf16, or for weights and tokens in MXFP4. The
// entry for every product takes such weights too, with everything that a plain product does not
// have.
template <typename Tile>
struct Sm90Mxfp4 : Sm90Plain<Tile> {
  static constexpr bool kMxfp4 = true;
  static_assert(Tile::kUe8m0Weights);
};

// A tile in the entry for D with scales, otherwise as plain. With fewer tokens, whose sums are
// pushed, D is small.
template <typename Tile>
struct Sm90Scaled : Sm90Plain<Tile> {
  static constexpr bool kScaledD = true;
  static_assert(!Tile::kPushesSums);
};

// A tile in the entry for D by rows with C, an activation or maxima, otherwise as plain
// (sums/fields.cuh).
template <typename Tile>
struct Sm90Fields : Sm90Plain<Tile> {
  static constexpr bool kFields = true;
};

// A tile in the entry for grouped products (grouped.cuh): rows of a group begin anywhere, so a
// token tile is numbered by its first row. A CTA computes one tile after the other, each with all
// of K. Which they are it lists in shared memory. Groups of consumer warps exchange their sums in
// the drained ring of tokens, while the ring of weights fills for the next tile.
template <typename Tile>
struct Sm90Grouped : Tile {
  static constexpr bool kGrouped = true;
  static constexpr bool kSeveralTiles = true;
  static constexpr uint32_t kTokenStep = 1;
  static constexpr uint32_t kListedTiles = 4;
  static constexpr uint32_t kListAt = (Tile::kSharedBytes + 15) / 16 * 16;
  static constexpr uint32_t kListRowsAt = kListAt + 16 * kListedTiles;
  static constexpr uint32_t kListFullAt = kListRowsAt + 4 * kListedTiles;
  static constexpr uint32_t kListEmptyAt = kListFullAt + 8 * kListedTiles;
  static constexpr uint32_t kSharedBytes = kListEmptyAt + 8 * kListedTiles;
  static_assert(!Tile::kBlockSums && !Tile::kPushesSums, "tiles of few tokens have no such entry");
  static_assert(Tile::kWholeSums || Tile::kSumsAt + Tile::kPartialBytes <= Tile::kWeightsAt,
                "the sums fit the drained ring of tokens");
  static_assert(kSharedBytes <=
                kMaxSharedBytes -
                    (Tile::kWorkspaceTokens ? kReservedSharedBytes + kGroupTokensSharedBytes : 0));
};

// A tile in the entry for gated products (gated.cuh): kColumnsOfD rows of b and as many of b2.
template <typename Tile, bool kTiny>
struct Sm90GatedOf {
  using Type = Sm90WideTile<Tile::kWeights, Tile::kTokens, Tile::kTokenType,
                            Sm90GatedRow<Tile::kWeights, Tile::kTokens, Tile::kTokenType>>;
};
template <typename Tile>
struct Sm90GatedOf<Tile, true> {
  using Type = Sm90TinyTile<Tile::kTokens, true>;
};
template <typename Tile>
using Sm90Gated = typename Sm90GatedOf<Tile, Tile::kBlockSums>::Type;

// A tile in the entries for packed weights (multiply_packed.cuh).
template <typename Tile>
using Sm90Packed = Sm90WideTile<Tile::kWeights, Tile::kTokens, Tile::kTokenType,
                                Sm90PackedRow<Tile::kWeights, Tile::kTokens>>;

// A tile in the entries for gated products of packed weights: a unit of b and one of b2.
template <typename Tile>
using Sm90PackedGated = Sm90WideTile<Tile::kWeights, Tile::kTokens, Tile::kTokenType,
                                     Sm90PackedGatedRow<Tile::kWeights, Tile::kTokens>>;

// What each operation (kernel/common/operations.h) makes of a tile.
template <typename Tile>
using Sm90_any = Tile;
template <typename Tile>
using Sm90_plain = Sm90Plain<Tile>;
template <typename Tile>
using Sm90_invariant = Sm90Invariant<Tile>;
template <typename Tile>
using Sm90_scaled = Sm90Scaled<Tile>;
template <typename Tile>
using Sm90_fields = Sm90Fields<Tile>;
template <typename Tile>
using Sm90_linear = Sm90Linear<Tile>;
template <typename Tile>
using Sm90_mxfp4 = Sm90Mxfp4<Tile>;
template <typename Tile>
using Sm90_grouped = Sm90Grouped<Tile>;
template <typename Tile>
using Sm90_gated = Sm90Gated<Tile>;
template <typename Tile>
using Sm90_gated_plain = Sm90Plain<Sm90Gated<Tile>>;
template <typename Tile>
using Sm90_grouped_gated = Sm90Grouped<Sm90Gated<Tile>>;
template <typename Tile>
using Sm90_packed = Sm90Packed<Tile>;
template <typename Tile>
using Sm90_packed_plain = Sm90Plain<Sm90Packed<Tile>>;
template <typename Tile>
using Sm90_packed_invariant = Sm90Invariant<Sm90Packed<Tile>>;
template <typename Tile>
using Sm90_packed_mxfp4 = Sm90Mxfp4<Sm90Packed<Tile>>;
template <typename Tile>
using Sm90_packed_grouped = Sm90Grouped<Sm90Packed<Tile>>;
template <typename Tile>
using Sm90_packed_gated = Sm90PackedGated<Tile>;
template <typename Tile>
using Sm90_packed_grouped_gated = Sm90Grouped<Sm90PackedGated<Tile>>;

}  // namespace nvfp4
