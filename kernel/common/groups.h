// SPDX-License-Identifier: MIT
// The parameters of kernels for grouped products that describe groups. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/offset.h"

namespace nvfp4 {

// The arrays are in device memory.
struct GroupParams {
  const int32_t* rows;        // end of group g in A and D; with a capacity, its number of rows
  const int32_t* scale_rows;  // first row of each group's scale tiles; NULL: after the last group's
  const float* alpha;         // NULL: all groups have one
  const float* alpha2;        // the same of gated products' second sums
  uint32_t count;             // groups
  uint32_t m;                 // rows that exist
  uint32_t capacity;          // rows from one group to the next; 0: from where the last one ends
};
static_assert(sizeof(GroupParams) == 48 && NVFP4_OFFSET_IS(GroupParams, capacity, 40));

// Number of a tile's entries for grouped products. grouped.def of a family lists such tiles.
template <typename Tile>
constexpr uint32_t kGroupedEntries = 0;
// Shared memory of a CTA of these entries.
template <typename Tile>
constexpr uint32_t kGroupedSharedBytes = Tile::kSharedBytes;
// The shared memory of a CTA of the entry for grouped gated products, where the tile has one
// (grouped_gated.def); else 0.
template <typename Tile>
constexpr uint32_t kGroupedGatedSharedBytes = 0;

}  // namespace nvfp4
