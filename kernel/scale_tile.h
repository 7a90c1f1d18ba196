// SPDX-License-Identifier: MIT
// A 128x4 tile of scales: 128 rows, one scale for each 16 of 64 elements of K. Row r's four bytes
// lie at 16 (r % 32) + 4 (r / 32), so that 32 rows of 16 bytes are what tcgen05.cp copies.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kScaleTileK = 64;      // elements of K
constexpr uint32_t kScaleTileRows = 128;  // of the operand
constexpr uint32_t kScaleTileBytes = 512;

}  // namespace nvfp4
