// SPDX-License-Identifier: MIT
// The cache policy for tokens on 10.x.
#pragma once

#include <cstdint>

#include "kernel/sm100/params.h"

namespace nvfp4 {

constexpr double kL2Bytes = 126e6;  // size of the L2 of a B200

// Every weight tile reads all tokens. If the L2 keeps them, they are read from DRAM only once, as
// long as they leave room for the weights. A review of this kernel put the limit at a quarter of
// the L2, since 16384^3 read 9.6 GB with all tokens kept. Neither the model nor the emulator can
// judge that: the model's cache evicts what was used longest ago and has no priorities, and the
// emulator has no caches.
constexpr uint64_t token_policy(int64_t m, int64_t k, int64_t l) {
  const double bytes = double(m) * double(k) * double(l) * (1.0 / 2 + 1.0 / 16);  // and scales
  return bytes * 4 < kL2Bytes ? kTokensEvictedLast : kTokensEvictedAsOthers;
}

}  // namespace nvfp4
