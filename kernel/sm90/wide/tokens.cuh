// SPDX-License-Identifier: MIT
// The token warps of a wide tile that decodes its own tokens on Hopper: packed codes and scales in
// global memory become fp16 rows that wgmma reads. The order of K is that of tokens_kernel.cuh.
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/token_scales.cuh"

namespace nvfp4 {

// 32 elements of a token. A lane's task t of a k-block has row lane / 4 + t / 2 * 8 of the tile,
// half t % 2 of the 64 elements lane % 4. So each store of a warp writes one word of every bank.
struct WideTask {
  uint4 codes;
  uint32_t scales;  // two
};

template <typename Tile>
__device__ void write_wide_task(uint32_t slot, uint32_t lane, uint32_t t, const WideTask& task) {
  const uint32_t scales = decode_scale_pair(task.scales);
  const uint32_t row = lane / 4;
  const uint32_t out = slot + row * kTokenRowBytes + row % 8 * 16 + lane % 4 * 4;
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) {
    uint32_t h[4];
    decode_codes(word(task.codes, j), scales, j / 2, Shifts(), h);
    const uint32_t sub_tile = t % 2 * 2 + j / 2;
#pragma unroll
    for (uint32_t n = 0; n < 4; ++n) {
      ptx::st_shared_b32((out ^ (j % 2 * 4 + n) * 16) + sub_tile * Tile::kSubTileBytes +
                             t / 2 * 8 * kTokenRowBytes,
                         h[n]);
    }
  }
}

template <typename Tile>
struct WideTokens {
  static constexpr uint32_t kAhead = Tile::kTokenStagesAhead;
  static constexpr uint32_t kWarps = Tile::kTokenWarps;
  static constexpr uint32_t kSlots = Tile::kSlots;
  static constexpr uint32_t kTasks = Tile::kTokens / 4;
  using Tasks = WideTask[kTasks];
  static_assert(Tile::kSlotsPerStage == 1);
  const Cta90<Tile>& cta;
  uint32_t lane, stages;
  StageOfAllTiles<Tile::kSeveralTiles> next;
  const uint8_t *codes, *scales;  // those of task 0 in the first k-block of K

  __device__ WideTokens(const Cta90<Tile>& of, uint32_t warp, uint32_t lane_of_warp)
      : cta(of), lane(lane_of_warp), stages(stages_of_all_tiles(of)), next(of, warp) {
    const Sm90Params& p = cta.p;
    const uint32_t row = cta.tile.token_tile * Tile::kTokenStep + lane / 4;
    const uint32_t step = lane % 4;
    codes = p.token_codes + cta.tile.batch * p.token_batch_bytes + row * p.token_row_bytes +
            static_cast<uint64_t>(step) * (kScaleTileK / 2);
    scales = has_linear_token_scales<Tile>(p)
                 ? linear_token_scales(p, cta.tile.batch, row, step).first
                 : tiled_token_scales(p, cta.tile.batch, row, step).first;
  }

  // kGeneral covers linear scales, every other row of which may begin at an odd address, and a K
  // that is not a multiple of 32, whose last 16 bytes exist only in half. Loads of both sizes go to
  // the same registers, so the second would wait for the first.
  __device__ void load(uint32_t i, Tasks& tasks) {
    if (!kTakesLinear<Tile> || (!has_linear_token_scales<Tile>(cta.p) && cta.p.k % 32 == 0)) {
      load_pieces<false>(i, tasks);
    } else {
      load_pieces<true>(i, tasks);
    }
    next.advance(kWarps, stages_of_k(cta.p));
  }

  // Beyond M and K there are zero codes under zero scales. There is no branch and no use of loaded
  // values, because then the thread would wait for each load in turn.
  template <bool kGeneral>
  __device__ void load_pieces(uint32_t i, Tasks& tasks) const {
    const bool linear = kGeneral && has_linear_token_scales<Tile>(cta.p);
    const uint32_t step_bytes = linear ? 4 : kScaleTileBytes;
    const uint32_t row_bytes = linear ? cta.p.k / 16 : 16;  // within 32 rows of a tile
    const uint32_t stage = next.at(cta, i);
    const int32_t block = (stage * Tile::kSteps + lane % 4) * (kScaleTileK / 16);
    const int32_t blocks = i < stages ? static_cast<int32_t>(cta.p.k / 16) - block : 0;
    const uint32_t row = cta.tile.token_tile * Tile::kTokenStep + lane / 4;
    const uint8_t* c = codes + static_cast<uint64_t>(stage) * (Tile::kK / 2);
    const uint8_t* s = scales + static_cast<uint64_t>(stage) * (Tile::kSteps * step_bytes);
#pragma unroll
    for (uint32_t t = 0; t < kTasks; ++t) {
      const uint32_t further = t / 2 * 8;  // rows
      const bool there = row + further < cta.p.m;
      const int32_t halves = there ? blocks - static_cast<int32_t>(t % 2 * 2) : 0;
      const uint8_t* of_codes = c + further * cta.p.token_row_bytes + t % 2 * 16;
      const uint8_t* of_scales = s + further * row_bytes + t % 2 * 2;
      if constexpr (kGeneral) {
        tasks[t].codes = ptx::ld_global_v4_b32_halves(of_codes, halves);
        tasks[t].scales = ptx::ld_global_u8_if(of_scales, halves > 0) |
                          ptx::ld_global_u8_if(of_scales + 1, halves > 1) << 8;
      } else {
        tasks[t].codes = ptx::ld_global_v4_b32_if(of_codes, halves >= 2);
        tasks[t].scales = ptx::ld_global_u16_if(of_scales, halves >= 2);
      }
    }
  }

  __device__ void write(uint32_t slot, const Tasks& tasks) const {
#pragma unroll
    for (uint32_t t = 0; t < kTasks; ++t) {
      write_wide_task<Tile>(cta.tokens(slot), lane, t, tasks[t]);
    }
  }

  __device__ uint32_t count() const { return stages; }
  __device__ uint32_t empty(uint32_t slot) const { return cta.tokens_empty(slot); }
  __device__ uint32_t full(uint32_t slot) const { return cta.tokens_full(slot); }
};

}  // namespace nvfp4
