// SPDX-License-Identifier: MIT
// Weights between a checkpoint's order and a packed one (docs/packing.md). pack_sm100.cuh has
// NVFP4_PACKING_SM100_1.
//
// NVFP4_PACKING_SM90_1: a CTA takes a unit of 64 rows x 64 of K, each of its four warps 16 rows. To
// pack, a lane makes its own four words, one for each step of 16 of K, from the codes of rows g and
// g + 8; the four lanes of a row read the same 8 bytes of it. To unpack, lane 4g+c makes step c of
// both rows from the four words that lanes 4g to 4g+3 have of it. A warp stores 512 contiguous
// bytes, or 32 of a row.
#pragma once

#include "kernel/quantize/matrix.cuh"
#include "kernel/quantize/pack_sm100.cuh"

namespace nvfp4 {

constexpr uint32_t kUnitRows = 64, kUnitK = 64, kUnitCodes = kUnitRows * kUnitK / 2;
constexpr uint32_t kSlabRows = 16, kSlabCodes = kSlabRows * kUnitK / 2;

// ---- Codes -------------------------------------------------------------------------------------

// Pair j of a word has the codes of row g + 8 (j % 2) and columns 8 (j / 2) + 2c and 2c + 1. Their
// magnitudes are at bits 3j, their signs at 12 + (j ^ 1); the second code's are 16 bits higher.
__device__ inline uint32_t place_pair_of(uint32_t byte, uint32_t j) {
  const uint32_t both = (byte & 15) | (byte & 0xF0) << 12;
  return (both & 0x00070007) << 3 * j | (both >> 3 & 0x00010001) << (12 + (j ^ 1));
}
__device__ inline uint32_t take_pair_of(uint32_t word, uint32_t j) {
  const uint32_t both = (word >> 3 * j & 0x00070007) | (word >> (12 + (j ^ 1)) & 0x00010001) << 3;
  return (both & 15) | both >> 12;
}

// ---- Scales ------------------------------------------------------------------------------------

// UE4M3 to 5 bits of exponent and 3 of mantissa, which has a hidden bit always: bits 14 to 7 of the
// scale times 128 in fp16. NaN is 0xFF.
__device__ inline uint32_t pack_ue4m3(uint32_t scale) {
  const uint32_t code = scale & kScaleNan;
  if (code == kScaleNan) return 0xFF;
  if (code >= 8) return code + (15 << 3);
  const uint32_t shift = __clz(code) - 28;  // to the hidden bit
  return code == 0 ? 0 : (16 - shift) << 3 | (code << shift & 7);
}
__device__ inline uint32_t unpack_ue4m3(uint32_t packed) {
  if (packed == 0xFF) return kScaleNan;
  if (packed >= 16 << 3) return packed - (15 << 3);
  return packed == 0 ? 0 : (8 | (packed & 7)) >> (16 - (packed >> 3));
}

// ---- Units -------------------------------------------------------------------------------------

// A warp's part of a unit.
struct Slab {
  uint8_t *codes, *scales;  // packed
  const uint8_t* from;      // codes of its first row, from the unit's first column on
  uint32_t row, k;          // its first, in the matrix
  uint8_t* scales_of_matrix;

  __device__ Slab(const PackParams& p, uint32_t block, uint32_t batch, uint32_t unit) {
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t blocks = p.format == kFormatMxfp4 ? 2 : 4;  // of a row of the unit
    const uint32_t units = (p.k + kUnitK - 1) / kUnitK;
    const uint64_t number = static_cast<uint64_t>(block) * units + unit;
    uint8_t* const at =
        p.packed + batch * p.packed_batch_bytes + number * (kUnitCodes + kUnitRows * blocks);
    row = block * kUnitRows + warp * kSlabRows;
    k = unit * kUnitK;
    codes = at + warp * kSlabCodes;
    scales = at + kUnitCodes + warp * kSlabRows * blocks;
    from = p.codes + batch * p.codes_batch_bytes + static_cast<int64_t>(row) * p.codes_row_bytes +
           k / 2;
    scales_of_matrix = p.scales + batch * p.scales_batch_bytes;
  }
};

__device__ inline void pack_codes(const PackParams& p, const Slab& slab) {
  const uint32_t lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  uint32_t words[4];
#pragma unroll
  for (uint32_t step = 0; step < 4; ++step) {
    words[step] = 0;
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      const bool there = slab.row + g + 8 * r < p.rows && slab.k + 16 * step < p.k;
      uint2 of_row = make_uint2(0, 0);
      if (there) {
        of_row =
            *reinterpret_cast<const uint2*>(slab.from + (g + 8 * r) * p.codes_row_bytes + 8 * step);
      }
      words[step] |= place_pair_of(of_row.x >> 8 * c & 0xFF, r) |
                     place_pair_of(of_row.y >> 8 * c & 0xFF, r + 2);
    }
  }
  *reinterpret_cast<uint4*>(slab.codes + lane * 16) =
      make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ inline void unpack_codes(const PackParams& p, const Slab& slab) {
  const uint32_t g = threadIdx.x % 32 / 4, step = threadIdx.x % 4;
  uint2 of_row[2] = {};
#pragma unroll
  for (uint32_t c = 0; c < 4; ++c) {
    const uint32_t word =
        *reinterpret_cast<const uint32_t*>(slab.codes + (4 * g + c) * 16 + 4 * step);
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      of_row[r].x |= take_pair_of(word, r) << 8 * c;
      of_row[r].y |= take_pair_of(word, r + 2) << 8 * c;
    }
  }
  if (slab.k + 16 * step >= p.k) return;
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    if (slab.row + g + 8 * r >= p.rows) continue;
    *reinterpret_cast<uint2*>(const_cast<uint8_t*>(slab.from) + (g + 8 * r) * p.codes_row_bytes +
                              8 * step) = of_row[r];
  }
}

// A word has two blocks of K of row g, then the same two of row g + 8; with 16 elements to a block
// each g has two words. visit(place in the word's bits, address of the scale) for each that exists.
template <typename Visit>
__device__ void each_scale(const PackParams& p, const Slab& slab, uint32_t word,
                           const Visit& visit) {
  const bool of_32 = p.format == kFormatMxfp4;
  const uint32_t g = of_32 ? word : word / 2, first = of_32 ? 0 : word % 2 * 2;
  const uint32_t blocks = p.k / 16 >> of_32, unit = slab.k / 16 >> of_32;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = slab.row + g + i / 2 * 8, block = unit + first + i % 2;
    if (row >= p.rows || block >= blocks) continue;
    visit(8 * i, slab.scales_of_matrix + scale_at(row, block, blocks, p.scales_are_tiles != 0));
  }
}
__device__ inline uint32_t scale_words(const PackParams& p) {
  return p.format == kFormatMxfp4 ? 8 : 16;
}

__device__ inline void pack_scales(const PackParams& p, const Slab& slab) {
  const uint32_t lane = threadIdx.x % 32;
  if (lane >= scale_words(p)) return;
  uint32_t word = 0;
  each_scale(p, slab, lane, [&](uint32_t bits, const uint8_t* scale) {
    word |= (p.format == kFormatNvfp4 ? pack_ue4m3(*scale) : *scale) << bits;
  });
  reinterpret_cast<uint32_t*>(slab.scales)[lane] = word;
}

__device__ inline void unpack_scales(const PackParams& p, const Slab& slab) {
  const uint32_t lane = threadIdx.x % 32;
  if (lane >= scale_words(p)) return;
  const uint32_t word = reinterpret_cast<const uint32_t*>(slab.scales)[lane];
  each_scale(p, slab, lane, [&](uint32_t bits, uint8_t* scale) {
    const uint32_t byte = word >> bits & 0xFF;
    *scale = static_cast<uint8_t>(p.format == kFormatNvfp4 ? unpack_ue4m3(byte) : byte);
  });
}

// A thread block of grid.y takes every gridDim.y-th block of rows of all matrices. It calls
// convert(block, batch, number along K) for what the thread blocks of grid.x take.
template <uint32_t kRows, uint32_t kK, typename Convert>
__device__ void each_part(const PackParams& p, const Convert& convert) {
  const uint32_t blocks = (p.rows + kRows - 1) / kRows;
  const uint32_t units = (p.k + kK - 1) / kK;
  const uint64_t all = static_cast<uint64_t>(blocks) * p.batches;
  for (uint64_t i = blockIdx.y; i < all; i += gridDim.y) {
    const uint64_t batch = p.batches == 1 ? 0 : i / blocks;
    const uint32_t block = static_cast<uint32_t>(i - batch * blocks);
    for (uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
      convert(block, static_cast<uint32_t>(batch), unit);
    }
  }
}

__device__ inline void pack_weights(const PackParams& p) {
  if (p.swizzled != 0) {
    each_part<kPackedBlockRows, kPackedBlockK>(p, [&](uint32_t row, uint32_t batch, uint32_t k) {
      pack_block(p, PackedBlock(p, row, batch, k));
    });
    return;
  }
  each_part<kUnitRows, kUnitK>(p, [&](uint32_t row, uint32_t batch, uint32_t k) {
    const Slab slab(p, row, batch, k);
    pack_codes(p, slab);
    pack_scales(p, slab);
  });
}

__device__ inline void unpack_weights(const PackParams& p) {
  if (p.swizzled != 0) {
    each_part<kPackedBlockRows, kPackedBlockK>(p, [&](uint32_t row, uint32_t batch, uint32_t k) {
      unpack_block(p, PackedBlock(p, row, batch, k));
    });
    return;
  }
  each_part<kUnitRows, kUnitK>(p, [&](uint32_t row, uint32_t batch, uint32_t k) {
    const Slab slab(p, row, batch, k);
    unpack_codes(p, slab);
    unpack_scales(p, slab);
  });
}

}  // namespace nvfp4
