// SPDX-License-Identifier: MIT
// How long the L2 of a 10.x keeps tokens.
#pragma once

#include <cstdint>

#include "kernel/sm100/params.h"

namespace nvfp4 {

constexpr double kL2Bytes = 126e6;  // of a B200

// Tokens are read for every weight tile. Kept in the L2 they cost one way from DRAM, as long as
// they leave room for what passes: below a quarter of it, says a review of this kernel, since
// 16384^3 read 9.6 GB with all tokens kept. Neither model nor emulator can judge that: the model
// forgets what was used longest ago and knows no priorities, and the emulator has no caches.
constexpr uint64_t token_policy(int64_t m, int64_t k, int64_t l) {
  const double bytes = double(m) * double(k) * double(l) * (1.0 / 2 + 1.0 / 16);  // and scales
  return bytes * 4 < kL2Bytes ? kTokensEvictedLast : kTokensEvictedAsOthers;
}

}  // namespace nvfp4
