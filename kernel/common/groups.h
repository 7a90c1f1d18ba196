// SPDX-License-Identifier: MIT
// The parameters of kernels for grouped products that describe groups. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/offset.h"

namespace nvfp4 {

// What the arrays hold is device data.
struct GroupParams {
  const int32_t* rows;        // of A and D, where group g ends; with a capacity, how many it has
  const int32_t* scale_rows;  // of tiles of scales, where each group begins; NULL: after the last
  const float* alpha;         // NULL: all groups have one
  uint32_t count;             // groups
  uint32_t m;                 // rows that exist
  uint32_t capacity;          // rows from one group to the next; 0: from where the last one ends
};
static_assert(sizeof(GroupParams) == 40 && NVFP4_OFFSET_IS(GroupParams, capacity, 32));

// How many entries for grouped products a tile has: grouped.def of a family says of which.
template <typename Tile>
constexpr uint32_t kGroupedEntries = 0;
// And the shared memory of a CTA of them.
template <typename Tile>
constexpr uint32_t kGroupedSharedBytes = Tile::kSharedBytes;

}  // namespace nvfp4
