// SPDX-License-Identifier: MIT
// The token warps of a tiny tile on Hopper. They decode packed codes in global memory to the B
// operands of wgmma, e5m2 with a column per block of 16 (tiny/tiny.cuh), and scales to factors.
//
//   operands  [half][word j][8 columns][16-byte column: even, odd elements][column][chunk] 4 bytes
//   factors   [unit][column] fp16, or bf16 of UE8M0 scales
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/tiny/formats.cuh"
#include "kernel/sm90/token_scales.cuh"

namespace nvfp4 {

// A lane's word of one token's k-block; lanes 0 .. 15 also have the scale of a block.
struct TinyTask {
  uint32_t codes, scale;
};

// The result beyond K is zero. There is no branch and no use of loaded values, because then the
// thread would wait for each load in turn.
template <bool kLinear>
__device__ TinyTask load_tiny_task(const Sm90Params& p, uint32_t batch, uint32_t row,
                                   uint32_t stage, uint32_t lane, uint32_t shift, bool there) {
  const uint32_t first = stage * (kSm90StageK / kScaleTileK) >> shift;
  const uint8_t* codes = p.token_codes + batch * p.token_batch_bytes + row * p.token_row_bytes +
                         static_cast<uint64_t>(stage) * (kSm90StageK / 2) + lane * 4;
  const TokenScales at = token_scales_at<kLinear>(p, batch, row, first, shift);
  const uint32_t scale = lane >> shift;
  const uint8_t* scales = at.first + scale / 4 * at.step_bytes + scale % 4;
  return {ptx::ld_global_b32_if(codes, there && stage * (kSm90StageK / 8) + lane < p.k / 8),
          ptx::ld_global_u8_if(scales,
                               there && lane < 16 && stage * (kSm90StageK / 16) + lane < p.k / 16)};
}

// The column for block b of a token's chunk c.
template <typename Tile>
__device__ uint32_t column_of(uint32_t token, uint32_t c, uint32_t b) {
  return Tile::kTokenColumns == 8 ? c + 4 * b : c + 4 * token;
}

template <typename Format, typename Tile>
__device__ void write_tiny_task(const Cta90<Tile>& cta, uint32_t stage, uint32_t token,
                                uint32_t lane, const TinyTask& task) {
  const uint32_t half = lane / 16, c = lane / 4 % 4, j = lane % 4;
  const uint32_t column = column_of<Tile>(token, c, j / 2);
  const uint32_t operand = cta.tokens(stage) + (half * 4 + j) * Tile::kOperandBytes +
                           column / 8 * 256 + column % 8 * 16 + 4 * c;
  uint32_t bytes[2];
  Format::place_tokens(task.codes, bytes);
  ptx::st_shared_b32(operand, bytes[0]);
  ptx::st_shared_b32(operand + 128, bytes[1]);
  if (lane < 16) {
    // Blocks are numbered by half, chunk, block.
    const uint32_t chunk = lane / 2 % 4, block = lane % 2;
    const uint32_t unit = Tile::kTokenColumns == 8 ? lane / 8 : lane / 8 * 2 + block;
    const uint32_t at = unit * Tile::kColumns + column_of<Tile>(token, chunk, block);
    ptx::st_shared_b16(cta.smem + Tile::kFactorsAt + stage * Tile::kFactorBytes + at * 2,
                       static_cast<uint16_t>(Format::token_factor(task.scale)));
  }
}

// Called before the first k-block, by `threads` threads together.
template <typename Tile>
__device__ void clear_operands(const Cta90<Tile>& cta, uint32_t thread, uint32_t threads) {
  constexpr uint32_t kBytes = Tile::kStages * (Tile::kSlotBytes + Tile::kFactorBytes);
  static_assert(kBytes % 16 == 0 &&
                Tile::kFactorsAt == Tile::kTokensAt + Tile::kStages * Tile::kSlotBytes);
  for (uint32_t at = thread * 16; at < kBytes; at += threads * 16) {
    ptx::st_shared_v4_b32(cta.tokens(0) + at, make_uint4(0, 0, 0, 0));
  }
  ptx::fence_proxy_async_shared_cta();
}

template <typename Tile, typename Format, bool kLinear>
struct TinyTokens {
  static constexpr uint32_t kAhead = 2;
  static constexpr uint32_t kWarps = Tile::kTokenWarps;
  static constexpr uint32_t kSlots = Tile::kStages;
  using Tasks = TinyTask[Tile::kTokens];
  const Cta90<Tile>& cta;
  uint32_t lane, stages;
  StageOfAllTiles<Tile::kSeveralTiles> next;

  __device__ TinyTokens(const Cta90<Tile>& of, uint32_t warp, uint32_t lane_of_warp)
      : cta(of), lane(lane_of_warp), stages(stages_of_all_tiles(of)), next(of, warp) {}

  __device__ void load(uint32_t i, Tasks& tasks) {
    const uint32_t first = cta.tile.token_tile * Tile::kTokens;
    const uint32_t shift = Format::kUe8m0 ? log2_steps_per_scale_tile<Tile>(cta.p) : 0;
#pragma unroll
    for (uint32_t t = 0; t < Tile::kTokens; ++t) {
      tasks[t] = load_tiny_task<kLinear>(cta.p, cta.tile.batch, first + t, next.at(cta, i), lane,
                                         shift, i < stages && first + t < cta.p.m);
    }
    next.advance(kWarps, stages_of_k(cta.p));
  }

  __device__ void write(uint32_t stage, const Tasks& tasks) const {
#pragma unroll
    for (uint32_t t = 0; t < Tile::kTokens; ++t) {
      write_tiny_task<Format>(cta, stage, t, lane, tasks[t]);
    }
  }

  __device__ uint32_t count() const { return stages; }
  __device__ uint32_t empty(uint32_t stage) const { return cta.weights_empty(stage); }
  __device__ uint32_t full(uint32_t stage) const { return cta.weights_full(stage); }
};

}  // namespace nvfp4
