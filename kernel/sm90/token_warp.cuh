// SPDX-License-Identifier: MIT
// A warp of a CTA on Hopper that decodes tokens into a ring of stages, for either form of tokens:
// TinyTokens (tiny/tokens.cuh), WideTokens (wide/tokens.cuh).
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

// The warps alternate between k-blocks, and a warp loads kAhead of its k-blocks in advance. It
// issues the first loads before anything else. Later they would queue behind the first k-blocks of
// weights.
//
// Tokens has kAhead, kWarps and kSlots, the slots of the ring; Tasks, what a lane loads for a
// k-block; load(i, tasks), for the warp's k-blocks in turn, and write(slot, tasks); count(), the
// CTA's k-blocks; the barriers empty(slot), full(slot).
template <typename Tokens>
struct TokenWarp {
  static_assert(Tokens::kSlots % Tokens::kWarps == 0, "a part of the ring is one warp's");
  uint32_t warp;
  Tokens tokens;
  typename Tokens::Tasks next[Tokens::kAhead];

  template <typename Cta>
  __device__ TokenWarp(const Cta& cta, uint32_t number, uint32_t lane)
      : warp(number), tokens(cta, number, lane) {}

  __device__ void start() {
#pragma unroll
    for (uint32_t a = 0; a < Tokens::kAhead; ++a) tokens.load(warp + a * Tokens::kWarps, next[a]);
  }

  __device__ void run() {
    for (uint32_t i = warp; i < tokens.count();) {
#pragma unroll
      for (uint32_t a = 0; a < Tokens::kAhead; ++a) {
        if (i >= tokens.count()) break;
        const auto at = RingPosition<Tokens::kSlots>::at(i);
        ptx::mbarrier_wait(tokens.empty(at.stage), at.parity ^ 1);
        tokens.write(at.stage, next[a]);
        ptx::fence_proxy_async_shared_cta();
        ptx::mbarrier_arrive(tokens.full(at.stage));  // each lane for what it has written
        tokens.load(i + Tokens::kAhead * Tokens::kWarps, next[a]);
        i += Tokens::kWarps;
      }
    }
  }
};

}  // namespace nvfp4
