// SPDX-License-Identifier: MIT
// Shared memory in which a CTA keeps the list of tiles of a grouped product (group_list.cuh). Plain
// C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kListEntries = 1024;

// An entry is a group. With more groups than entries it is a run of groups, all of one length.
struct GroupListMemory {
  uint32_t tiles[kListEntries];       // tiles of all groups before the entry
  uint32_t rows[kListEntries];        // end of the entry's rows; with a capacity, their number
  uint32_t scale_rows[kListEntries];  // the entry's first row of scales
  uint32_t all_tiles;
  uint32_t unused;
};

}  // namespace nvfp4
