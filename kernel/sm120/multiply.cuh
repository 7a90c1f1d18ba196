// SPDX-License-Identifier: MIT
// The warps that multiply. Both operands come into registers as they lie in a stage: ldmatrix takes
// rows of 16 bytes out of the swizzle, and a lane's word is eight codes of K in their order. A word
// of a scale tile is the four scales of a row for one step of 64, as mma.sync wants them.
#pragma once

#include <cstdint>

#include "kernel/common/ring.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/ldmatrix.cuh"
#include "kernel/ptx/mma_scaled.cuh"
#include "kernel/sm120/cta.cuh"

namespace nvfp4 {

template <typename Tile>
struct Sm120Sums {
  float of[Tile::kMmaRows][Tile::kMmaColumns][4];
};

// What a lane reads in step 0 of a stage, as offsets in it. Step s of codes is at ^ 32 s: a step is
// two pieces of 16 bytes, and the swizzle of a row exchanges the pieces of its line.
template <typename Tile>
struct Sm120Lane {
  uint32_t weights, tokens, weight_scales, token_scales;

  __device__ Sm120Lane(const Sm120Cta<Tile>& cta, uint32_t warp, uint32_t lane) {
    const uint32_t w = warp % Tile::kWarpsW, v = warp / Tile::kWarpsW;
    const uint32_t swizzle = (Tile::kRowBytes == 128 ? lane % 8 : lane % 8 / 2) * 16;
    // Matrices 0 and 1 of ldmatrix are rows 0 to 15 of the m16 tile, 2 and 3 their next 16 bytes.
    weights = (16 * w + lane % 16) * Tile::kRowBytes + (lane / 16 * 16 ^ swizzle);
    // Matrices 0 and 1 are 32 bytes of an n8 tile, 2 and 3 those of the warp's next n8 tile.
    tokens = Tile::kTokensAt + (8 * (v + lane / 16 * Tile::kWarpsT) + lane % 8) * Tile::kRowBytes +
             (lane / 8 % 2 * 16 ^ swizzle);
    // mma.sync takes the scales of rows g and g + 8 of weights from lanes 4 g and 4 g + 1, those of
    // token g from lane 4 g.
    const uint32_t row = cta.n % kScaleTileRows + 16 * w + lane / 4 + lane % 2 * 8;
    const uint32_t token = cta.m % kScaleTileRows + 8 * v + lane / 4;
    weight_scales = Tile::kWeightScalesAt + scale_word_at<32>(row);
    token_scales = Tile::kTokenScalesAt + scale_word_at<Tile::kTokenScaleLanes>(token);
  }
};

// The scales of kCount tiles of an operand, kRows apart. Words of rows 32 apart are neighbours.
template <uint32_t kCount, uint32_t kRows>
__device__ void load_scale_words(uint32_t at, uint32_t mask, uint32_t (&words)[kCount]) {
  if constexpr (kCount == 4 && kRows == 32) {
    const uint4 four = ptx::ld_shared_v4_b32(at);
    words[0] = four.x & mask;
    words[1] = four.y & mask;
    words[2] = four.z & mask;
    words[3] = four.w & mask;
  } else {
    static_assert(kCount == 1 || kCount * kRows <= 32, "within a band of 32 rows");
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      words[i] = ptx::ld_shared_b32(at + scale_lane(i * kRows)) & mask;
    }
  }
}

template <typename Tile>
__device__ void load_token_fragments(uint32_t at, uint32_t (&b)[Tile::kMmaColumns][2]) {
  if constexpr (Tile::kMmaColumns == 1) {
    ptx::ldmatrix_x2(at, b[0]);
  } else {
#pragma unroll
    for (uint32_t j = 0; j < Tile::kMmaColumns; j += 2) {
      uint32_t two[4];
      ptx::ldmatrix_x4(at + j * 8 * Tile::kWarpsT * Tile::kRowBytes, two);
      b[j][0] = two[0];
      b[j][1] = two[1];
      b[j + 1][0] = two[2];
      b[j + 1][1] = two[3];
    }
  }
}

// One step of 64 of K. `mask` clears bit 7 of each scale, which mma.sync does not ignore, and
// scales beyond K: they may hold a NaN, which codes of zero would not stop.
template <typename Tile>
__device__ void multiply_step(const Sm120Lane<Tile>& at, uint32_t stage, uint32_t step,
                              uint32_t mask, Sm120Sums<Tile>& sums) {
  uint32_t sfa[Tile::kMmaRows], sfb[Tile::kMmaColumns];
  load_scale_words<Tile::kMmaRows, 16 * Tile::kWarpsW>(
      stage + at.weight_scales + step * Tile::kWeightScaleBytes, mask, sfa);
  load_scale_words<Tile::kMmaColumns, 8 * Tile::kWarpsT>(
      stage + at.token_scales + step * Tile::kTokenScaleBytes, mask, sfb);
  uint32_t b[Tile::kMmaColumns][2];
  load_token_fragments<Tile>(stage + at.tokens ^ 32 * step, b);
#pragma unroll
  for (uint32_t i = 0; i < Tile::kMmaRows; ++i) {
    uint32_t a[4];
    ptx::ldmatrix_x4((stage + at.weights ^ 32 * step) + i * 16 * Tile::kWarpsW * Tile::kRowBytes,
                     a);
#pragma unroll
    for (uint32_t j = 0; j < Tile::kMmaColumns; ++j) {
      ptx::mma_m16n8k64_nvf4(sums.of[i][j], a, b[j][0], b[j][1], sfa[i], sfb[j]);
    }
  }
}

constexpr uint32_t kScaleBits = 0x7F7F7F7F;  // of four UE4M3 scales

template <typename Tile>
__device__ void multiply_block(const Sm120Lane<Tile>& at, uint32_t stage, uint32_t elements,
                               Sm120Sums<Tile>& sums) {
  if (elements >= Tile::kK) {
#pragma unroll
    for (uint32_t step = 0; step < Tile::kSteps; ++step) {
      multiply_step(at, stage, step, kScaleBits, sums);
    }
    return;
  }
#pragma unroll 1
  for (uint32_t step = 0; step * kScaleTileK < elements; ++step) {
    const uint32_t left = elements - step * kScaleTileK;
    const uint32_t within = left < kScaleTileK ? scales_within_k(left) : ~0u;
    multiply_step(at, stage, step, kScaleBits & within, sums);
  }
}

// All k-blocks of the K partition, in the order of K.
template <typename Tile>
__device__ void multiply_all(const Sm120Cta<Tile>& cta, uint32_t warp, uint32_t lane,
                             Sm120Sums<Tile>& sums) {
  const Sm120Lane<Tile> at(cta, warp, lane);
  RingPosition<Tile::kStages> ring;
#pragma unroll 1
  for (uint32_t i = 0; i < cta.blocks; ++i, ring.advance()) {
    ptx::mbarrier_wait(cta.full(ring.stage), ring.parity);
    multiply_block(at, cta.stage(ring.stage), cta.elements(i), sums);
    __syncwarp();  // all lanes have read the stage
    if (lane == 0) ptx::mbarrier_arrive(cta.empty(ring.stage));
  }
}

}  // namespace nvfp4
