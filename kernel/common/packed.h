// SPDX-License-Identifier: MIT
// Weights in the order of NVFP4_PACKING_SM90_1 (docs/packing.md): units of 64 weights x 64 elements
// of K, codes and then scales. Plain C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kPackedRows = 64;  // weights
constexpr uint32_t kPackedK = 64;
constexpr uint32_t kPackedCodeBytes = kPackedRows * kPackedK / 2;
constexpr uint32_t kPackedUnitBytes = kPackedCodeBytes + kPackedRows * kPackedK / 16;
// If 32 elements share a scale.
constexpr uint32_t kPackedUnitBytesOf32 = kPackedCodeBytes + kPackedRows * kPackedK / 32;

// A slab is 16 weights of a unit: what one warp multiplies. A lane has 16 bytes of its codes.
constexpr uint32_t kPackedSlabs = 4;
constexpr uint32_t kPackedSlabBytes = kPackedCodeBytes / kPackedSlabs;

}  // namespace nvfp4
