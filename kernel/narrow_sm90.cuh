// SPDX-License-Identifier: MIT
// The consumer warps of a narrow tile on Hopper: weights from shared memory to registers, decoded
// there, and mma.sync. wgmma takes 13 clocks for 64 x 8 x 16 and makes four warps wait for each
// other; four mma.sync take 6 and leave a warp alone (H200, 2026-11-21).
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "decode.cuh"
#include "ptx_mbarrier.cuh"
#include "ptx_mma.cuh"
#include "ptx_sync.cuh"

namespace nvfp4 {

// A warp takes 32 rows of a stage, row + 32q for q = 0 .. 3, whose scales are neighbours, and half
// of K. Two of the rows make one mma.sync: D's rows g and g+8.
template <typename Tile>
using NarrowSums = float[2][Tile::kTokenBlocks][4];  // [rows q = 2i, 2i+1][block of 8 tokens][]

// A quarter warp's two rows, 0 and 4, 1 and 5, .., differ in the upper bit of the 128-byte swizzle:
// its eight 16-byte reads hit all banks.
__device__ inline uint32_t narrow_row(uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4;
  return warp % 8 / 2 * 8 + g % 2 * 4 + g / 2;
}

// What a lane reads of stage 0.
struct NarrowLane {
  uint32_t codes, scales, tokens, full;
  uint32_t first_scales;  // of the stage's first 64-step, which is never beyond K
  uint32_t scale_bytes;   // selects its two of a word's four scales
};

template <typename Tile>
__device__ NarrowLane narrow_lane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t c = lane % 4, half = warp % 2;
  const uint32_t row = narrow_row(warp, lane);
  // Through a shuffle, or ptxas computes them again in every stage.
  const auto keep = [&](uint32_t value) { return __shfl_sync(0xFFFFFFFF, value, lane); };
  return {keep(cta.weights(0) + row * (Tile::kK / 2) + ((4 * half + c) ^ row % 8) * 16),
          keep(cta.scales(0) + (2 * half + c / 2) * kScaleTileBytes + row * 16),
          keep(cta.tokens(0) + half * 4 * Tile::kFragmentBytes + lane * 16),
          keep(cta.weights_full(0)),
          keep(cta.scales(0) + row * 16),
          keep(c % 2 == 0 ? 0x4410 : 0x4432)};
}

// A part beyond K has no scales in shared memory, and zero codes (filled by TMA): it takes zeros.
template <typename Tile>
__device__ void multiply_stage(const NarrowLane& at, uint32_t stage, bool beyond_k,
                               NarrowSums<Tile>& sums) {
  uint4 rows[4];
#pragma unroll
  for (uint32_t q = 0; q < 4; ++q) {
    rows[q] = ptx::ld_shared_v4_b32(at.codes + stage * Tile::kWeightBytes + q * 32 * Tile::kK / 2);
  }
  const uint4 packed =
      ptx::ld_shared_v4_b32((beyond_k ? at.first_scales : at.scales) + stage * Tile::kScaleBytes);
  const uint32_t scale_bytes = beyond_k ? 0x4444 : at.scale_bytes;
  uint32_t scales[4];
#pragma unroll
  for (uint32_t q = 0; q < 4; ++q) {
    scales[q] = decode_scale_pair(__byte_perm(word(packed, q), 0, scale_bytes));
  }
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) {
    uint4 b[Tile::kTokenBlocks];
#pragma unroll
    for (uint32_t n = 0; n < Tile::kTokenBlocks; ++n) {
      b[n] = ptx::ld_shared_v4_b32(at.tokens + stage * Tile::kTokenBytes +
                                   j * Tile::kFragmentBytes + n * 512);
    }
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t upper[4], lower[4];
      decode_codes(word(rows[2 * i], j), scales[2 * i], j / 2, Shifts(), upper);
      decode_codes(word(rows[2 * i + 1], j), scales[2 * i + 1], j / 2, Shifts(), lower);
      const uint32_t first[4] = {upper[0], lower[0], upper[1], lower[1]};
      const uint32_t second[4] = {upper[2], lower[2], upper[3], lower[3]};
#pragma unroll
      for (uint32_t n = 0; n < Tile::kTokenBlocks; ++n) {
        ptx::mma_m16n8k16(sums[i][n], first, b[n].x, b[n].y);
        ptx::mma_m16n8k16(sums[i][n], second, b[n].z, b[n].w);
      }
    }
  }
}

// Group g's stages: g, g + kGroups, ..
template <typename Tile>
__device__ void multiply_narrow(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                NarrowSums<Tile>& sums) {
  constexpr uint32_t kEmpty = Tile::kWeightsEmptyAt - Tile::kWeightsFullAt;
  const NarrowLane at = narrow_lane(cta, warp, lane);
  const uint32_t group = warp / 8;
  const uint32_t last = cta.count - 1;
  const bool ends_beyond_k = 2 * (warp % 2) + lane % 4 / 2 >= cta.steps(last);
  uint32_t stage = group, parity = 0, before = 0;
#pragma unroll
  for (auto& rows : sums)
    for (auto& block : rows)
      for (float& sum : block) sum = 0;
  for (uint32_t i = group; i < cta.count; i += Tile::kGroups) {
    ptx::mbarrier_wait(at.full + 8 * stage, parity);
    // A stage is given back when the next one is there: right behind the loads, an arrival overtook
    // some of them (docs/performance.md, "A race").
    if (i != group && lane == 0) ptx::mbarrier_arrive(at.full + kEmpty + 8 * before);
    multiply_stage<Tile>(at, stage, i == last && ends_beyond_k, sums);
    __syncwarp();
    before = stage;
    stage += Tile::kGroups;
    if (stage >= Tile::kStages) {
      stage -= Tile::kStages;
      parity ^= 1;
    }
  }
}

// The sums of a warp to shared memory: [part of K][token][weight].
template <typename Tile>
__device__ void put_narrow_sums(const NarrowSums<Tile>& sums, uint32_t at, uint32_t warp,
                                uint32_t lane) {
  const uint32_t part = warp / 8 * 2 + warp % 2;
  const uint32_t own = at + part * Tile::kPartBytes + 2 * (lane % 4) * Tile::kSumRowBytes +
                       narrow_row(warp, lane) * 4;
#pragma unroll
  for (uint32_t q = 0; q < 4; ++q) {
#pragma unroll
    for (uint32_t n = 0; n < Tile::kTokenBlocks; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        ptx::st_shared_f32(own + (n * 8 + i) * Tile::kSumRowBytes + q * 32 * 4,
                           sums[q / 2][n][q % 2 * 2 + i]);
      }
    }
  }
}

}  // namespace nvfp4
