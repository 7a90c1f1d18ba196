// SPDX-License-Identifier: MIT
// The parameters of kernels for grouped products that describe groups. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/offset.h"

namespace nvfp4 {

// Group g has rows rows[g-1] to rows[g] of A and D. What the arrays hold is device data.
struct GroupParams {
  const int32_t* rows;
  uint32_t count;  // groups
  uint32_t m;      // rows that exist
};
static_assert(sizeof(GroupParams) == 16 && NVFP4_OFFSET_IS(GroupParams, m, 12));

// How many entries for grouped products a tile has: grouped.def of a family says of which.
template <typename Tile>
constexpr uint32_t kGroupedEntries = 0;

}  // namespace nvfp4
