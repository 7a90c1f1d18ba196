// SPDX-License-Identifier: MIT
// Multiplies one k-block: decodes 64 weights of a stage to fragments in registers, then multiplies
// them by the tokens of the stage.
//
// Both operands of mma.sync are in registers, so they may take K in any order, if it is the same
// one. Lane 4g+c takes 32 neighbouring elements of K of rows g and g + 8, quarter c of the k-block:
// four words of codes and two scales, in memory order. The nibbles n and n + 4 of a word make a
// pair, so a pair of tokens has elements n and n + 4 of eight neighbours.
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/sm80/cta.cuh"
#include "kernel/sm80/decode.cuh"

namespace nvfp4 {

constexpr uint32_t kSm80MmaRows = kSm80Weights / 16;  // MMAs along the weights of a warp's tile

template <typename Tile>
struct Sm80Sums {
  float of[kSm80MmaRows][Tile::kTokens / 8][4];
  uint32_t nan_rows;  // bit 2 t + r: a scale of row g + 8 r of MMA row t was a NaN
};

// Addresses that a lane reads in stage 0 of its ring.
template <typename Tile>
struct Sm80Lane {
  uint32_t codes, scales;                  // those of row g
  uint32_t pick;                           // __byte_perm's: its scales in the word there
  uint32_t tokens[Tile::kTokens / 8];      // token g of each 8; piece j is at tokens ^ 16 j
  uint32_t token_mask[Tile::kTokens / 8];  // mask for a stage's offset; 0 if zeros are read instead

  // `log2`: of the elements that share a scale. A lane's 32 have two, or one.
  __device__ Sm80Lane(const Sm80Cta<Tile>& cta, uint32_t ring, uint32_t lane, uint32_t log2) {
    const uint32_t g = lane / 4, c = lane % 4;
    codes = ring + g * kSm80CodeRowBytes + c * 16;
    scales = ring + kSm80CodeBytes + g * kSm80ScaleRowBytes + (log2 == 4 ? c * 2 : c & 2);
    pick = log2 == 4 ? 0x4140 : c % 2 == 0 ? 0x4040 : 0x4141;
    const uint32_t swizzled = (4 * c ^ sm80_token_swizzle(c / 2, g)) * 16;
#pragma unroll
    for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
      const uint32_t row = 8 * u + g;
      const bool there = row < cta.tokens;
      tokens[u] =
          there ? ring + kSm80CodeBytes + kSm80ScaleBytes + row * kSm80TokenRowBytes + swizzled
                : cta.zeros() + swizzled % kSm80ZeroBytes;
      token_mask[u] = there ? 0xFFFFFFFF : 0;
    }
  }
};

// Loads a lane's two scales of a row and clears bit 7 of each.
__device__ inline uint32_t load_scales_80(uint32_t at) { return ptx::ld_shared_u16(at) & 0x7F7F; }

// Bits of the rows that have a NaN among their scales within K; bytes beyond K may hold anything.
__device__ inline uint32_t rows_with_nan(uint32_t scales, uint32_t elements, uint32_t lane) {
  const uint32_t begin = lane % 4 * (kSm80BlockK / 4);
  const uint32_t count = elements <= begin ? 0 : min((elements - begin) / 16, 2u);
  const uint32_t within = 0x8080 & ((1u << 8 * count) - 1);
  uint32_t rows = 0;
#pragma unroll
  for (uint32_t i = 0; i < 2 * kSm80MmaRows; ++i) {
    const uint32_t two = load_scales_80(scales + i * 8 * kSm80ScaleRowBytes);
    rows |= static_cast<uint32_t>(((two + 0x0101) & within) != 0) << i;
  }
  return rows;
}

// A lane's scales of all its rows, those of a row as a pair. A NaN among them sets bit 7 of a byte.
template <typename Operand>
__device__ uint32_t decode_scales_80(uint32_t at, uint32_t (&pairs)[kSm80MmaRows][2]) {
  uint32_t above = 0;
#pragma unroll
  for (uint32_t i = 0; i < 2 * kSm80MmaRows; ++i) {
    const uint32_t two = load_scales_80(at + i * 8 * kSm80ScaleRowBytes);
    above |= two + 0x0101;
    pairs[i / 2][i % 2] = Operand::scale_pair(__byte_perm(two, 0, 0x4140));
  }
  return above & 0x8080;
}

// The same of UE8M0 scales. Bytes beyond K become 0: a NaN there would make one of codes of zero.
template <typename Operand>
__device__ void decode_ue8m0_80(uint32_t at, uint32_t pick, uint32_t elements, uint32_t lane,
                                uint32_t (&pairs)[kSm80MmaRows][2]) {
  const uint32_t begin = lane % 4 * (kSm80BlockK / 4);
  const uint32_t within = elements <= begin ? 0 : elements - begin <= 16 ? 0xFF : 0x00FF00FF;
#pragma unroll
  for (uint32_t i = 0; i < 2 * kSm80MmaRows; ++i) {
    const uint32_t word = ptx::ld_shared_u16(at + i * 8 * kSm80ScaleRowBytes);
    pairs[i / 2][i % 2] = Operand::scale_pair(__byte_perm(word, 0, pick) & within);
  }
}

__device__ inline uint32_t word_80(const uint4& v, uint32_t j) {
  return j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w;
}

// The B operands of a lane's 32 elements: pairs (n, n + 4) of each eight.
template <typename Tile>
__device__ void token_fragments(const Sm80Lane<Tile>& at, uint32_t stage,
                                uint32_t (&b)[Tile::kTokens / 8][4][4]) {
#pragma unroll
  for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
    const uint32_t from = at.tokens[u] + (stage & at.token_mask[u]);
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const uint4 piece = ptx::ld_shared_v4_b32(from ^ j * 16);
      b[u][j][0] = __byte_perm(piece.x, piece.z, 0x5410);
      b[u][j][1] = __byte_perm(piece.x, piece.z, 0x7632);
      b[u][j][2] = __byte_perm(piece.y, piece.w, 0x5410);
      b[u][j][3] = __byte_perm(piece.y, piece.w, 0x7632);
    }
  }
}

// The word j of both rows, half `kHalf` of a pair of scales.
template <typename Operand, uint32_t kHalf, typename Tile>
__device__ void multiply_word(const Sm80Powers& by, const uint32_t (&words)[2],
                              const uint32_t (&scales)[2], uint32_t j,
                              const uint32_t (&b)[Tile::kTokens / 8][4][4],
                              float (&sums)[Tile::kTokens / 8][4]) {
  uint32_t pairs[2][4];
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    Operand::place(words[r], by, pairs[r]);
#pragma unroll
    for (uint32_t& pair : pairs[r]) pair = Operand::template times<kHalf>(pair, scales[r]);
  }
#pragma unroll
  for (uint32_t two = 0; two < 2; ++two) {
    const uint32_t a[4] = {pairs[0][2 * two], pairs[1][2 * two], pairs[0][2 * two + 1],
                           pairs[1][2 * two + 1]};
#pragma unroll
    for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
      Operand::multiply(sums[u], a, b[u][j][2 * two], b[u][j][2 * two + 1]);
    }
  }
}

// `stage` is the byte offset of a stage in the ring. `elements` is the number of elements of K from
// its k-block on.
template <typename Tile, typename Operand>
__device__ void multiply_block(const Sm80Lane<Tile>& at, const Sm80Powers& by, uint32_t stage,
                               uint32_t elements, uint32_t lane, Sm80Sums<Tile>& sums) {
  uint32_t scales[kSm80MmaRows][2], above = 0;
  if constexpr (Operand::kUe8m0) {
    decode_ue8m0_80<Operand>(at.scales + stage, at.pick, elements, lane, scales);
  } else {
    above = decode_scales_80<Operand>(at.scales + stage, scales);
  }
  uint32_t b[Tile::kTokens / 8][4][4];
  token_fragments(at, stage, b);
#pragma unroll
  for (uint32_t t = 0; t < kSm80MmaRows; ++t) {
    const uint32_t row = at.codes + stage + 16 * t * kSm80CodeRowBytes;
    const uint4 codes[2] = {ptx::ld_shared_v4_b32(row),
                            ptx::ld_shared_v4_b32(row + 8 * kSm80CodeRowBytes)};
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t words[2] = {word_80(codes[0], j), word_80(codes[1], j)};
      if (j < 2) {
        multiply_word<Operand, 0, Tile>(by, words, scales[t], j, b, sums.of[t]);
      } else {
        multiply_word<Operand, 1, Tile>(by, words, scales[t], j, b, sums.of[t]);
      }
    }
  }
  if (above != 0) sums.nan_rows |= rows_with_nan(at.scales + stage, elements, lane);
}

}  // namespace nvfp4
