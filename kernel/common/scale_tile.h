// SPDX-License-Identifier: MIT
// Scales of an operand in the 128x4 layout: tiles of 128 rows and 64 elements of K with a scale per
// 16 elements, or 128 elements with a scale per 32. Plain C++, no CUDA.
//
//   tiles    [block of 128 rows][64-step of K], 512 bytes each
//   a tile   row r's four bytes at 16 (r % 32) + 4 (r / 32): 32 rows of 16 bytes, each of which
//            tcgen05.cp.32x128b copies to a lane, and rows 32 apart lie side by side
#pragma once

#include <cstdint>

#include "kernel/common/host_device.h"

namespace nvfp4 {

constexpr uint32_t kScaleTileK = 64;      // elements of K, if 16 share a scale
constexpr uint32_t kScaleTileRows = 128;  // of the operand
constexpr uint32_t kScaleTileScales = 4;  // of a row
constexpr uint32_t kScaleTileBytes = 512;

// Number of the tile for a block of rows and a step of 64, out of k_steps.
NVFP4_HOST_DEVICE constexpr uint64_t scale_tile_number(uint32_t block, uint32_t k_steps,
                                                       uint32_t step) {
  return static_cast<uint64_t>(block) * k_steps + step;
}

// Mask of the bytes, among a row's four in the last step, that belong to K if K is not a multiple
// of 64.
NVFP4_HOST_DEVICE constexpr uint32_t scales_within_k(uint32_t k) {
  return 0xFFFFFFFFu >> (32 - 8 * (k % kScaleTileK / 16));
}
static_assert(scales_within_k(64 + 16) == 0xFF && scales_within_k(48) == 0xFFFFFF);

// Offset of a row's four bytes in its tile: the sum of the two. scale_band: for a row below 128.
NVFP4_HOST_DEVICE constexpr uint32_t scale_lane(uint32_t row) { return row % 32 * 16; }
NVFP4_HOST_DEVICE constexpr uint32_t scale_band(uint32_t row) { return row / 32 * 4; }
static_assert(scale_lane(127) + scale_band(127) + 4 == kScaleTileBytes);

}  // namespace nvfp4
