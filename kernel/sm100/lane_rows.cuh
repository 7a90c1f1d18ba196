// SPDX-License-Identifier: MIT
// What a lane of the general epilogue of 10.x holds: some rows of one column.
#pragma once

#include <cstdint>

#include "kernel/ptx/packed_f32.cuh"
#include "kernel/sm100/boxes.cuh"

namespace nvfp4 {

// The rows of half a sub-tile: `count` rows from m on exist.
struct HalfRows {
  uint32_t batch, m, count;
};

// A lane's values: 16 rows of its column.
using LaneRows = float[kHalfRows];

// Applies an operation of two numbers to all of a lane's values.
template <typename Operation>
__device__ void each_two(LaneRows& x, const Operation& operation) {
#pragma unroll
  for (uint32_t i = 0; i < kHalfRows; i += 2) {
    ptx::unpack(operation(ptx::pack(x[i], x[i + 1]), i), x[i], x[i + 1]);
  }
}

}  // namespace nvfp4
