// SPDX-License-Identifier: MIT
// A number that tells the runs of products apart which leave words in a workspace
// (kernel/sm90/sums/even.cuh).
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr int kNonceBits = 48;

// Not 0, and another one at each of 2^48 calls of a process. Any thread may call it.
uint64_t draw_nonce();

}  // namespace nvfp4
