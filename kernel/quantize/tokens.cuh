// SPDX-License-Identifier: MIT
// Quantized tokens as NVFP4_PACKING_SM90_TOKENS_1 (docs/packing.md): each element times its block's
// scale in fp16, in units of 2^-7, in the order in which the kernels for 9.0 multiply.
//
// Block b of a k-block, 16 elements, is in slab b % 4. Its elements n and n + 4 of each eight are a
// word, at 4 (b / 4) bytes of chunk n of the slab's row, or chunk n + 4 for the second eight. So
// the words of four lanes fill the chunks of a row.
#pragma once

#include "kernel/common/block.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/quantize/params.h"

namespace nvfp4 {

constexpr uint32_t kTokenBlocks = 16;  // blocks of a k-block of 256 elements
constexpr uint32_t kSlabs = 4, kSlabRowBytes = 128, kChunkBytes = 16;

// The host refuses the packing on other GPUs (host/run/quantizer.cc).
__device__ inline bool is_packed(const Nvfp4Matrix& q) {
#if __CUDA_ARCH__ == 900
  return q.scales == nullptr;
#else
  return false;
#endif
}

// The number of blocks that are written in a row: those beyond K in the last k-block are zeros.
__device__ inline uint32_t written_blocks(const Nvfp4Matrix& q) {
  if (!is_packed(q)) return q.blocks;
  return (q.blocks + kTokenBlocks - 1) / kTokenBlocks * kTokenBlocks;
}

// Row `row` of the slab of `block`.
__device__ inline uint8_t* slab_row(const Nvfp4Matrix& q, uint32_t row, uint32_t block) {
  const uint32_t slab = block / kTokenBlocks * kSlabs + block % kSlabs;
  return q.codes + (static_cast<uint64_t>(slab) * q.rows + row) * kSlabRowBytes;
}
__device__ inline uint32_t chunk_at(uint32_t chunk, uint32_t row) {
  return (chunk ^ row % 8) * kChunkBytes;
}

// Eight codes times `scale`, a pair of equal numbers: words[n] has the elements n and n + 4. A code
// in bits 9 to 11 and 15 of an fp16 is its value times 2^-14.
__device__ inline void multiply_codes(uint32_t codes, uint32_t scale, uint32_t (&words)[4]) {
#pragma unroll
  for (uint32_t n = 0; n < 4; ++n) {
    const uint32_t pair = codes >> 4 * n;
    words[n] = ptx::mul_rn_f16x2((pair << 12 & 0x80008000) | (pair << 9 & 0x0E000E00), scale);
  }
}

// Word n of the lane with number c among four becomes word c of the lane with number n. These lanes
// are `apart`.
__device__ inline uint4 transposed(uint32_t lanes, uint32_t c, uint32_t apart,
                                   uint32_t (&words)[4]) {
#pragma unroll
  for (uint32_t bit = 1; bit < 4; bit *= 2) {
    const bool upper = (c & bit) != 0;
#pragma unroll
    for (uint32_t n = 0; n < 4; ++n) {
      if ((n & bit) != 0) continue;
      const uint32_t sent = upper ? words[n] : words[n + bit];
      const uint32_t received = __shfl_xor_sync(lanes, sent, apart * bit);
      words[n] = upper ? received : words[n];
      words[n + bit] = upper ? words[n + bit] : received;
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// All lanes of a k-block call this, 16 neighbours of a warp. A block beyond K becomes zeros.
__device__ inline void store_token_block(const Nvfp4Matrix& q, uint32_t row, uint32_t block,
                                         const Block& quantized) {
  const Block b = block < q.blocks ? quantized : Block{0, 0, 0};
  const uint32_t scale = ptx::mul_rn_f16x2(ptx::cvt_rn_f16x2_e4m3x2<0>(b.scale | b.scale << 8),
                                           0x58005800);  // times 2^7
  uint32_t low[4], high[4];
  multiply_codes(b.low, scale, low);
  multiply_codes(b.high, scale, high);
  const uint32_t c = block % kTokenBlocks / kSlabs;
  const uint32_t lanes = 0xFFFFu << (threadIdx.x & 16);
  uint8_t* const to = slab_row(q, row, block);
  *reinterpret_cast<uint4*>(to + chunk_at(c, row)) = transposed(lanes, c, kSlabs, low);
  *reinterpret_cast<uint4*>(to + chunk_at(4 + c, row)) = transposed(lanes, c, kSlabs, high);
}

// Element `i` of a block, times its scale.
__device__ inline float token_value(const Nvfp4Matrix& q, uint32_t row, uint32_t block,
                                    uint32_t i) {
  const uint8_t* const word = slab_row(q, row, block) + chunk_at(i / 8 * 4 + i % 4, row) +
                              block % kTokenBlocks / kSlabs * 4;
  return __fmul_rn(F16::value(*reinterpret_cast<const uint32_t*>(word), i % 8 / 4), 0x1p7f);
}

}  // namespace nvfp4
