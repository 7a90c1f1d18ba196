// SPDX-License-Identifier: MIT
// Weights between a checkpoint's order and NVFP4_PACKING_SM100_1 (docs/packing.md).
//
// A CTA takes a k-block of 128 rows: 256 elements of K, or what is left of K in whole units. Eight
// threads take the chunks of 16 bytes of a row, so a warp loads 128 contiguous bytes of each of
// four rows, and stores 512 contiguous bytes unless the chunks lie in columns. Then each thread
// takes the scales of a row.
#pragma once

#include "kernel/quantize/matrix.cuh"

namespace nvfp4 {

constexpr uint32_t kChunkK = 32, kChunksOfBlock = kPackedBlockK / kChunkK;
constexpr uint32_t kTileOfScales = 512;  // 128 rows x 4 scales
static_assert(kPackThreads == kPackedBlockRows);

// The units of a k-block, from its first byte on.
struct PackedBlock {
  uint8_t* at;
  uint32_t row, k;       // its first, in the matrix
  uint32_t units;        // it has so many
  uint32_t k_of_unit;    // 64, or 128 in MXFP4
  const uint8_t* codes;  // of its first row, from its first column on
  uint8_t* scales_of_matrix;

  __device__ PackedBlock(const PackParams& p, uint32_t block, uint32_t batch, uint32_t k_block) {
    k_of_unit = p.format == kFormatMxfp4 ? 128 : 64;
    const uint32_t of_matrix = (p.k + k_of_unit - 1) / k_of_unit;
    const uint32_t first = k_block * (kPackedBlockK / k_of_unit);
    units = min(of_matrix - first, kPackedBlockK / k_of_unit);
    row = block * kPackedBlockRows;
    k = k_block * kPackedBlockK;
    const uint64_t number = static_cast<uint64_t>(block) * of_matrix + first;
    at = p.packed + batch * p.packed_batch_bytes +
         number * (kPackedBlockRows * k_of_unit / 2 + kTileOfScales);
    codes = p.codes + batch * p.codes_batch_bytes + static_cast<int64_t>(row) * p.codes_row_bytes +
            k / 2;
    scales_of_matrix = p.scales + batch * p.scales_batch_bytes;
  }
  __device__ uint32_t chunks() const { return units * k_of_unit / kChunkK; }  // of a row
  // A whole k-block has rows of 128 bytes in the 128-byte swizzle of shared memory, a shorter one
  // columns of chunks.
  __device__ uint8_t* chunk(uint32_t its_row, uint32_t i) const {
    if (chunks() < kChunksOfBlock) return at + (i * kPackedBlockRows + its_row) * 16;
    return at + its_row * 128 + (i ^ its_row % 8) * 16;
  }
  // The four scales of a row in a unit.
  __device__ uint32_t* scale_word(uint32_t its_row, uint32_t unit) const {
    uint8_t* const first = at + chunks() * kPackedBlockRows * 16 + unit * kTileOfScales;
    return reinterpret_cast<uint32_t*>(first + its_row % 32 * 16 + its_row / 32 * 4);
  }
};

// Calls visit(chunk of 16 bytes, first of its two halves in the checkpoint, how many halves of it
// exist) for each chunk of the k-block. K is a multiple of a half, 16 elements.
template <typename Visit>
__device__ void each_chunk(const PackParams& p, const PackedBlock& block, const Visit& visit) {
  const uint32_t i = threadIdx.x % kChunksOfBlock;
  if (i >= block.chunks()) return;
  const uint32_t k = block.k + i * kChunkK;
  const uint32_t halves = k + 16 < p.k ? 2 : k < p.k ? 1 : 0;
  constexpr uint32_t kRowsAtOnce = kPackThreads / kChunksOfBlock;
  for (uint32_t row = threadIdx.x / kChunksOfBlock; row < kPackedBlockRows; row += kRowsAtOnce) {
    const uint8_t* const from = block.codes + row * p.codes_row_bytes + i * 16;
    visit(block.chunk(row, i), from, block.row + row < p.rows ? halves : 0);
  }
}

// Calls visit(place in the word's bits, address of the scale) for each of a row's scales in a unit.
template <typename Visit>
__device__ void each_scale_of_unit(const PackParams& p, const PackedBlock& block, uint32_t unit,
                                   const Visit& visit) {
  const uint32_t row = block.row + threadIdx.x, of_32 = p.format == kFormatMxfp4;
  const uint32_t blocks = p.k / 16 >> of_32, first = (block.k / 16 >> of_32) + unit * 4;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if (row >= p.rows || first + i >= blocks) continue;
    visit(8 * i,
          block.scales_of_matrix + scale_at(row, first + i, blocks, p.scales_are_tiles != 0));
  }
}

__device__ inline void pack_block(const PackParams& p, const PackedBlock& block) {
  each_chunk(p, block, [](uint8_t* chunk, const uint8_t* from, uint32_t halves) {
    uint2 low = make_uint2(0, 0), high = low;
    if (halves > 0) low = reinterpret_cast<const uint2*>(from)[0];
    if (halves > 1) high = reinterpret_cast<const uint2*>(from)[1];
    *reinterpret_cast<uint4*>(chunk) = make_uint4(low.x, low.y, high.x, high.y);
  });
  const uint32_t kept = p.format == kFormatNvfp4 ? kScaleNan : 0xFF;  // bit 7 of UE4M3 is not
  for (uint32_t unit = 0; unit < block.units; ++unit) {
    uint32_t word = 0;
    each_scale_of_unit(p, block, unit, [&](uint32_t bits, const uint8_t* scale) {
      word |= (*scale & kept) << bits;
    });
    *block.scale_word(threadIdx.x, unit) = word;
  }
}

__device__ inline void unpack_block(const PackParams& p, const PackedBlock& block) {
  each_chunk(p, block, [](const uint8_t* chunk, const uint8_t* from, uint32_t halves) {
    const uint4 both = *reinterpret_cast<const uint4*>(chunk);
    uint2* const to = reinterpret_cast<uint2*>(const_cast<uint8_t*>(from));
    if (halves > 0) to[0] = make_uint2(both.x, both.y);
    if (halves > 1) to[1] = make_uint2(both.z, both.w);
  });
  for (uint32_t unit = 0; unit < block.units; ++unit) {
    const uint32_t word = *block.scale_word(threadIdx.x, unit);
    each_scale_of_unit(p, block, unit, [&](uint32_t bits, uint8_t* scale) {
      *scale = static_cast<uint8_t>(word >> bits);
    });
  }
}

}  // namespace nvfp4
