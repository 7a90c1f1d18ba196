// SPDX-License-Identifier: MIT
// A warp of a CTA on Hopper that decodes tokens into a ring of stages, whatever the form they take:
// TinyTokens (tiny/tokens.cuh), WideTokens (wide/tokens.cuh).
#pragma once

#include <cstdint>

#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/common/ring.cuh"

namespace nvfp4 {

// Stages are dealt out to the warps in turn; a warp loads kAhead of its stages in advance. It asks
// for the first of them before all else, since they would queue after the weights' first stages.
//
// Tokens: kAhead, kWarps, the ring's kSlots; Tasks, what a lane loads of a stage; load(i, tasks),
// of the warp's stages in turn, and write(slot, tasks); count(), the CTA's stages; the barriers
// empty(slot), full(slot).
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
        ptx::mbarrier_arrive(tokens.full(at.stage));  // each lane for what it wrote
        tokens.load(i + Tokens::kAhead * Tokens::kWarps, next[a]);
        i += Tokens::kWarps;
      }
    }
  }
};

}  // namespace nvfp4
