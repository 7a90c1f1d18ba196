// SPDX-License-Identifier: MIT
// The activation pre-pass for wide tiles on Hopper: packed codes and scales in global memory become
// fp16 rows that wgmma reads.
//
// ORDER OF K. A warp's lane 4g+c takes 64 neighbouring elements of a weight row from a k-block of
// 256 (c = 0 .. 3), eight to a word: that is one 32-byte read and the four scales of one scale-tile
// row. From this lane wgmma needs the columns 2c, 2c+1, 2c+8, 2c+9 of each 16. So element 64c + 8j
// + n of the k-block is multiplied in step 2j + (n % 4) / 2 at column 2c + 8 * (n % 2) + n / 4, and
// the tokens are stored in the same order: any order of K is right if both operands follow it.
//
//   slab (64 positions: 4 steps)  j / 2
//   16-byte chunk in its row      4 * (j % 2) + n % 4, XOR row % 8 (the 128-byte swizzle)
//   in the chunk                  4c bytes, (n, n + 4): a word of decode_codes
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/token_scales.cuh"

namespace nvfp4 {

// The work of one thread: words j of the four 64-element parts of one token's k-block, and their
// scales.
struct TokenPiece {
  uint32_t codes[4];
  uint32_t scales[4];
};

constexpr uint32_t kPiecesPerStage = 8;  // j

// Rows beyond M and parts beyond K are zeros under zero scales. There is no branch and no use of
// loaded values, because then the thread would wait for each load in turn.
template <bool kLinear>
__device__ TokenPiece load_token_piece(const Sm90Params& p, uint32_t batch, uint32_t row,
                                       uint32_t stage, uint32_t j) {
  constexpr uint32_t kSteps = kSm90StageK / kScaleTileK;
  const uint32_t words = p.k / 8;  // words of a row: two per scale, so both end together
  const uint32_t first = stage * kSteps;
  const uint8_t* codes = p.token_codes + batch * p.token_batch_bytes + row * p.token_row_bytes +
                         static_cast<uint64_t>(first) * (kScaleTileK / 2) + j * 4;
  const TokenScales at = token_scales_at<kLinear>(p, batch, row, first);
  const uint8_t* scales = at.first + j / 2;
  TokenPiece piece;
#pragma unroll
  for (uint32_t c = 0; c < kSteps; ++c) {
    const bool there = row < p.m && (first + c) * kPiecesPerStage + j < words;
    piece.codes[c] = ptx::ld_global_b32_if(codes + c * (kScaleTileK / 2), there);
    piece.scales[c] = ptx::ld_global_u8_if(scales + c * at.step_bytes, there);
  }
  return piece;
}

// chunks[i] is the chunk of n % 4 == i.
__device__ inline void decode_token_piece(const TokenPiece& piece, uint4 (&chunks)[4]) {
  uint32_t h[4][4];
#pragma unroll
  for (uint32_t pair = 0; pair < 2; ++pair) {
    const uint32_t scales =
        decode_scale_pair(piece.scales[2 * pair] | piece.scales[2 * pair + 1] << 8);
    decode_codes(piece.codes[2 * pair], scales, 0, Shifts(), h[2 * pair]);
    decode_codes(piece.codes[2 * pair + 1], scales, 1, Shifts(), h[2 * pair + 1]);
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) chunks[i] = make_uint4(h[0][i], h[1][i], h[2][i], h[3][i]);
}

__device__ inline uint4 shuffle_xor_1(const uint4& v) {
  return make_uint4(__shfl_xor_sync(0xFFFFFFFF, v.x, 1), __shfl_xor_sync(0xFFFFFFFF, v.y, 1),
                    __shfl_xor_sync(0xFFFFFFFF, v.z, 1), __shfl_xor_sync(0xFFFFFFFF, v.w, 1));
}

// Among the eight chunks of a sub-tile's row, piece j has 4 (j % 2) .. 4 (j % 2) + 3. Its lane
// receives 2 i + j % 2, so that a store of the warp fills sectors of 32 bytes; half-filled sectors
// would be written twice.
__device__ inline void deal_out_chunks(uint32_t j, uint4 (&chunks)[4]) {
  const bool odd = j % 2;
  const uint4 one = shuffle_xor_1(odd ? chunks[0] : chunks[1]);
  const uint4 other = shuffle_xor_1(odd ? chunks[2] : chunks[3]);
  const uint4 own[2] = {odd ? chunks[1] : chunks[0], odd ? chunks[3] : chunks[2]};
  chunks[0] = odd ? one : own[0];
  chunks[1] = odd ? other : own[1];
  chunks[2] = odd ? own[0] : one;
  chunks[3] = odd ? own[1] : other;
}

// One thread per piece. A CTA takes 16 rows of a k-block, [batch][k-block][16 rows]. The workspace
// then has what NVFP4_PACKING_SM90_TOKENS_1 is (docs/packing.md): [batch][slab][row] of 128 bytes,
// so a tile's part of a slab is contiguous, whatever the tile. Indices of k-blocks have 32 bits: a
// 64-bit division takes longer than everything else here.
__device__ inline void decode_tokens_to_workspace(const Sm90Params& p) {
  // This launch is never programmatic (host/run/launch.cc), so earlier grids have ended. Tokens may
  // be read, and the GEMM may load weights beside this grid.
  ptx::griddepcontrol_launch_dependents();

  constexpr uint32_t kRows = kTokenKernelRows;
  static_assert(kRows == kTokenKernelThreads / kPiecesPerStage);
  constexpr uint32_t kSubTiles = kSm90StageK / kScaleTileK;
  const uint32_t stages = (p.k + kSm90StageK - 1) / kSm90StageK;
  const uint32_t ctas_per_stage = (p.m + kRows - 1) / kRows;
  const uint32_t stage_of_batch = blockIdx.x / ctas_per_stage;
  const uint32_t j = threadIdx.x % kPiecesPerStage;
  const uint32_t row =
      (blockIdx.x - stage_of_batch * ctas_per_stage) * kRows + threadIdx.x / kPiecesPerStage;
  const uint32_t batch = p.batches == 1 ? 0 : stage_of_batch / stages;

  uint4 chunks[4];
  const uint32_t stage = stage_of_batch - batch * stages;
  decode_token_piece(p.token_scales_linear == 0 ? load_token_piece<false>(p, batch, row, stage, j)
                                                : load_token_piece<true>(p, batch, row, stage, j),
                     chunks);
  deal_out_chunks(j, chunks);
  if (row >= p.m) return;
  const uint64_t slab = static_cast<uint64_t>(stage_of_batch) * kSubTiles + j / 2;
  uint8_t* out = static_cast<uint8_t*>(p.token_sub_tiles) + (slab * p.m + row) * kTokenRowBytes;
  const uint32_t swizzle = row % 8;  // of the tile's row too, since a tile has a multiple of 8
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    *reinterpret_cast<uint4*>(out + ((2 * i + j % 2) ^ swizzle) * 16) = chunks[i];
  }
}

}  // namespace nvfp4
