// SPDX-License-Identifier: MIT
// The token warps of a narrow tile on Hopper: packed codes and scales in global memory to fp16
// fragments of mma.sync in shared memory.
//
// ORDER OF K. Lane 4g+c of a consumer warp takes 32 neighbouring elements of a weight row, chunk c
// of the four that make half a stage, eight to a word. mma.sync wants of this lane the rows 2c,
// 2c+1, 2c+8, 2c+9 of each 16 of K, for token g. Any order of K is right if both operands follow it:
// word j of chunk c is steps 2j and 2j+1, in the order in which decode_codes returns it.
//
//   stage  [half][word j][block of 8 tokens][lane 4g+c]  16 bytes: h[0 .. 3] of decode_codes
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "decode.cuh"
#include "ptx_mbarrier.cuh"
#include "ptx_sync.cuh"

namespace nvfp4 {

// A task is a chunk of one token: 16 bytes of codes and their two scales.
struct TokenTask {
  uint4 codes;
  uint32_t scales;
};

constexpr uint32_t kTasksPerToken = kSm90StageK / 32;

// Zero codes under zero scales if there is no such task, or beyond K. No branch and no use of what is
// loaded: a thread would wait for each load in turn.
__device__ inline TokenTask load_task(const GemmParams& p, uint32_t batch, uint32_t row,
                                      uint32_t stage, uint32_t chunk, bool there) {
  const uint32_t k_steps = p.k / kScaleTileK;
  const uint32_t step = stage * (kSm90StageK / kScaleTileK) + chunk / 2;
  const uint8_t* codes = p.token_codes + batch * p.token_batch_bytes + row * p.token_row_bytes +
                         static_cast<uint64_t>(stage) * (kSm90StageK / 2) + chunk * 16;
  const uint64_t tile = static_cast<uint64_t>(row / kScaleTileRows) * k_steps + step;
  const uint8_t* scales = p.token_scales + batch * p.token_scales_batch_bytes +
                          tile * kScaleTileBytes + row % 32 * 16 + row % kScaleTileRows / 32 * 4 +
                          chunk % 2 * 2;
  there = there && step < k_steps;
  return {ptx::ld_global_v4_b32_if(codes, there), ptx::ld_global_u16_if(scales, there)};
}

template <typename Tile>
__device__ void write_task(uint32_t stage, uint32_t token, uint32_t chunk, const TokenTask& task) {
  const uint32_t scales = decode_scale_pair(task.scales);
  const uint32_t out = stage + chunk / 4 * 4 * Tile::kFragmentBytes + token / 8 * 512 +
                       (token % 8 * 4 + chunk % 4) * 16;
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) {
    uint32_t h[4];
    decode_codes(word(task.codes, j), scales, j / 2, Shifts(), h);
    ptx::st_shared_v4_b32(out + j * Tile::kFragmentBytes, make_uint4(h[0], h[1], h[2], h[3]));
  }
}

// Of a stage. Rows beyond M have none: their fragments stay zero.
template <typename Tile>
__device__ uint32_t token_tasks(const Cta90<Tile>& cta) {
  return min(Tile::kTokens, cta.p.m - cta.tile.token_tile * Tile::kTokens) * kTasksPerToken;
}

// Before the first stage, by `threads` threads together.
template <typename Tile>
__device__ void clear_fragments(const Cta90<Tile>& cta, uint32_t thread, uint32_t threads) {
  if (token_tasks(cta) == Tile::kTokens * kTasksPerToken) return;
  for (uint32_t at = thread * 16; at < Tile::kStages * Tile::kTokenBytes; at += threads * 16) {
    ptx::st_shared_v4_b32(cta.tokens(0) + at, make_uint4(0, 0, 0, 0));
  }
}

// A pass is what a warp decodes at once: up to 32 tasks of a stage.
template <typename Tile>
__device__ uint32_t token_passes(const Cta90<Tile>& cta) {
  return (token_tasks(cta) + 31) / 32;
}

// Passes are dealt out to the token warps in turn. As the warps divide the stages of the ring, a
// part of it is always the same warp's, which so sees every phase of the barriers it waits for.
template <typename Tile>
struct TokenPass {
  uint32_t i;     // stage, counted from the CTA's first
  uint32_t task;  // this lane's, of the stage

  __device__ void advance(uint32_t passes) {
    task += 32 * Tile::kTokenWarps;
    settle(passes);
  }
  __device__ void settle(uint32_t passes) {
    for (; task >= 32 * passes; task -= 32 * passes) ++i;
  }
};

// Loads run two passes ahead of the stage that is written: one takes longer than a stage. The first
// ones come before everything else, as in tokens_tiny_sm90.cuh.
template <typename Tile>
struct NarrowTokenWarp {
  static_assert(Tile::kStages % Tile::kTokenWarps == 0, "a part of the ring is one warp's");
  static constexpr uint32_t kAhead = 2;
  const Cta90<Tile>& cta;
  uint32_t tasks, passes;  // of a stage
  TokenPass<Tile> at, ahead;
  TokenTask next[kAhead];

  __device__ NarrowTokenWarp(const Cta90<Tile>& of, uint32_t warp, uint32_t lane)
      : cta(of), tasks(token_tasks(of)), passes(token_passes(of)), at{0, warp * 32 + lane} {
    at.settle(passes);
    ahead = at;
  }

  __device__ TokenTask load() {
    const uint32_t first_token = cta.tile.token_tile * Tile::kTokens;
    const TokenTask task = load_task(
        cta.p, cta.tile.batch, first_token + ahead.task / kTasksPerToken, cta.stage_begin + ahead.i,
        ahead.task % kTasksPerToken, ahead.task < tasks && ahead.i < cta.count);
    ahead.advance(passes);
    return task;
  }

  __device__ void start() {
#pragma unroll
    for (uint32_t a = 0; a < kAhead; ++a) next[a] = load();
  }

  __device__ void run() {
    while (at.i < cta.count) {
#pragma unroll
      for (uint32_t a = 0; a < kAhead; ++a) {
        if (at.i >= cta.count) break;
        const uint32_t stage = at.i % Tile::kStages, round = at.i / Tile::kStages;
        ptx::mbarrier_wait(cta.weights_empty(stage), round % 2 ^ 1);
        if (at.task < tasks) {
          write_task<Tile>(cta.tokens(stage), at.task / kTasksPerToken, at.task % kTasksPerToken,
                           next[a]);
        }
        // Each lane for what it wrote: racecheck does not see an order through __syncwarp and one lane.
        ptx::mbarrier_arrive(cta.weights_full(stage));
        next[a] = load();
        at.advance(passes);
      }
    }
  }
};

}  // namespace nvfp4
