// SPDX-License-Identifier: MIT
// The epilogue parameters of a gated product in addition to those of epilogue.h. Plain C++, no
// CUDA.
//
//   x = ((alpha * a_tensor_scale) * b_tensor_scale) * sum;     x = x + bias
//   y = ((alpha2 * a_tensor_scale) * b2_tensor_scale) * sum2;  y = y + bias2
//   D = round(act(min(x, limit)) * (max(min(y, limit), -limit) + beta))
//
// where SiLU is x / (1 + exp(-silu_alpha * x)). NaN stays NaN.
#pragma once

#include <cstdint>

#include "kernel/common/offset.h"

namespace nvfp4 {

struct GateParams {
  const float* alpha2_device;    // NULL: alpha2 comes by value
  const float* b2_tensor_scale;  // NULL: none
  const void* bias2;             // of epilogue.h's bias_type
  float alpha2;
  float limit;  // infinity: none
  float silu_alpha;
  float beta;  // 0: nothing is added
};
static_assert(sizeof(GateParams) == 40 && NVFP4_OFFSET_IS(GateParams, alpha2, 24));

// Numbers by which the host plans and launches a tile's entry for gated products. They are 0 if the
// tile has none. Each family sets those of its tiles.
struct GatedNumbers {
  uint32_t columns;  // columns of D in a tile
  uint32_t stages, stage_bytes, shared_bytes, tmem_columns, max_split;
  uint32_t entries;  // 2: one of them is for plain products
};
template <typename Tile>
constexpr GatedNumbers kGatedNumbers{};
template <typename Gated>
constexpr GatedNumbers gated_numbers(uint32_t entries) {
  return {Gated::kColumnsOfD,
          Gated::kStages,
          Gated::kStageBytes,
          Gated::kSharedBytes,
          Gated::kColumnsAllocated,
          Gated::kMaxSplit,
          entries};
}

}  // namespace nvfp4
