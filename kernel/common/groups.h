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
  int64_t bias_stride;        // elements from a group's bias to the next; 0: all groups have one
  const float* d_tensor_scale;  // of a D with scales; NULL: all groups have one, or none has
};
static_assert(sizeof(GroupParams) == 64 && NVFP4_OFFSET_IS(GroupParams, bias_stride, 48));

}  // namespace nvfp4
