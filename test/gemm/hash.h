// SPDX-License-Identifier: MIT
// The hash by which committed bits of D are compared.
#pragma once

#include <cstdint>
#include <vector>

namespace gemm_test {

// FNV-1a of the elements' bytes, low byte first.
inline uint64_t hash(const std::vector<uint16_t>& d) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const uint16_t element : d) {
    h = (h ^ (element & 0xFF)) * 0x100000001B3u;
    h = (h ^ (element >> 8)) * 0x100000001B3u;
  }
  return h;
}

}  // namespace gemm_test
