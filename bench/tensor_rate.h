// SPDX-License-Identifier: MIT
// The fp16 rate of a Hopper's tensor cores: a loop of wgmma on random numbers in shared memory,
// which waits for no memory and decodes nothing. What a GEMM reaches at most.
#pragma once

#include <cstdint>
#include <string>

#include "tools/harness/driver.h"

namespace bench {

constexpr unsigned kRateThreads = 256;          // two warpgroups, one CTA per SM
constexpr size_t kRateSharedBytes = 48 * 1024;  // of fp16 in any order, the same for every CTA

// `dense_wgmma(.u64 from, .u64 out, .u32 rounds)`: each thread stores the bits of its sums, mixed.
std::string dense_wgmma_program();

// Multiply-adds of one launch.
inline double rate_macs(unsigned ctas, uint32_t rounds) {
  constexpr double kWarpgroups = 2, kWgmmasPerRound = 16, kMacs = 64 * 256 * 16;
  return ctas * kWarpgroups * kWgmmasPerRound * kMacs * rounds;
}

}  // namespace bench
