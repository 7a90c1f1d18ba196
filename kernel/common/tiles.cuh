// SPDX-License-Identifier: MIT
// The tile of D that belongs to an index: a static schedule, flattened into grid.x.
#pragma once

#include <cstdint>

namespace nvfp4 {

struct TileCoordinate {
  uint32_t token_tile, weight_tile, batch;
  // Only for grouped products, where token_tile is the tile's first row: the end of the rows of its
  // group, which is above 0, and the place of the first row in a list of its own (GroupWalk): the
  // row of scales that belongs to it, or its number among the rows of all groups.
  uint32_t row_end = 0, scale_row = 0;
};

// Tokens vary fastest: CTAs that start together share a weight tile, which then comes from DRAM
// once (it is evict-first) while the tokens, the smaller operand, stay in L2.
template <typename Params>
__device__ inline TileCoordinate tile_at(const Params& p, uint32_t index) {
  const uint32_t weight_row = index / p.tiles_m;
  return {index - weight_row * p.tiles_m, weight_row % p.tiles_n, weight_row / p.tiles_n};
}

}  // namespace nvfp4
