// SPDX-License-Identifier: MIT
// All pairs of an element and a finite scale, multiplied by 16-bit tokens.
#pragma once

#include "tools/harness/device_gemm.h"

namespace gemm_test {

// Each block of B has all codes, in each row from another one on, and a scale of its own; token r
// takes element r.
inline support::Problem a16_pairs(int32_t type) {
  constexpr int64_t kK = 64, kBlocks = kK / 16, kRows = 128 / kBlocks;
  support::Problem p = support::make_a16_problem({kK, kRows, kK}, type, support::Data::exact, 904);
  const uint16_t one = type == NVFP4_TYPE_F16 ? 0x3C00 : 0x3F80;
  for (int64_t row = 0; row < kK; ++row)
    for (int64_t k = 0; k < kK; ++k) p.a.set_half(0, row, k, k == row ? one : 0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t k = 0; k < kK; ++k) p.b.set_code(0, row, k, uint8_t((k + row) % 16));
    for (int64_t i = 0; i < kBlocks; ++i)
      p.b.set_scale(0, row, i, uint8_t((row * kBlocks + i) % 127));
  }
  return p;
}

}  // namespace gemm_test
