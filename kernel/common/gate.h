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

}  // namespace nvfp4
