// SPDX-License-Identifier: MIT
// The tiles of the sm_90a kernel by name, made from the rows of tiles.def. The planner reads them
// too: plain C++, no CUDA.
//
// A CTA (of `split` that share a tile along K) computes tiles of kWeights x kTokens elements of
// D^T, one unless kSeveralTiles. The weights (B) are decoded into registers, as the A operand of
// the tensor core; stages of 256 elements of K, packed codes and their scale tiles, come through a
// ring.
//
// kStagesAhead: not all of the ring is asked for at first. Memory would bring the last of many
// stages of all CTAs as soon as the first, and nothing would be multiplied until then.
#pragma once

#include "kernel/sm90/tiny/tile.h"
#include "kernel/sm90/wide/tile.h"

namespace nvfp4 {

#define SM90_TINY_TILE(weights, tokens, ...) \
  using Sm90Tile##weights##x##tokens = Sm90TinyTile<tokens>;
#define SM90_WIDE_TILE(weights, tokens, ...) \
  using Sm90Tile##weights##x##tokens = Sm90WideTile<weights, tokens>;
#define SM90_A16_TILE(weights, tokens, ...)                                                   \
  using Sm90TileF16_##weights##x##tokens = Sm90WideTile<weights, tokens, Sm90TokenType::f16>; \
  using Sm90TileBf16_##weights##x##tokens = Sm90WideTile<weights, tokens, Sm90TokenType::bf16>;
#include "kernel/sm90/tiles.def"

}  // namespace nvfp4
