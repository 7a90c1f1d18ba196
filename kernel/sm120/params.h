// SPDX-License-Identifier: MIT
// The argument of the kernels for 12.x. Plain C++, no CUDA.
#pragma once

#include "kernel/common/params.h"

namespace nvfp4 {

// The kernel that adds K partitions: rows and columns of D of a CTA, a row per warp.
constexpr uint32_t kSm120AddRows = 8, kSm120AddColumns = 128;
constexpr uint32_t kSm120AddThreads = 32 * kSm120AddRows;

// A box of the maps is as wide as a k-block, 128 or 64 bytes, and has the swizzle of that width.
struct Sm120Params {
#include "kernel/common/params.def"
  float* partitions;  // workspace: [K partition][batch][m][n, rounded up to a multiple of 4]
  uint32_t batches;
  uint16_t weight_scales_linear;  // 1: row after row; otherwise 128x4 tiles
  uint16_t token_scales_linear;
  EpilogueParams epilogue;
};
NVFP4_CHECK_PARAMS(Sm120Params, 640);
static_assert(NVFP4_OFFSET_IS(Sm120Params, partitions, 344) &&
              NVFP4_OFFSET_IS(Sm120Params, epilogue, 360));

}  // namespace nvfp4
