// SPDX-License-Identifier: MIT
// Addresses of a matrix's elements, codes and scales, and which thread takes which of its blocks.
#pragma once

#include "kernel/common/block.cuh"
#include "kernel/common/operand_format.h"
#include "kernel/quantize/params.h"
#include "kernel/quantize/tokens.cuh"
#include "kernel/quantize/ue8m0.cuh"

namespace nvfp4 {

// ---- Work --------------------------------------------------------------------------------------

// A warp takes 32 neighbouring blocks of a row. The CTA's warps take consecutive rows, then rows
// further down until there are no more. No lane is idle if k is a multiple of 512.
struct Place {
  uint32_t row, row_step, block;
  __device__ Place()
      : row(blockIdx.y * kQuantizeWarps + threadIdx.x / 32),
        row_step(gridDim.y * kQuantizeWarps),
        block(blockIdx.x * 32 + threadIdx.x % 32) {}
};

// ---- Elements ----------------------------------------------------------------------------------

// A block as stored in memory.
template <typename Type>
struct Words {
  static constexpr uint32_t kCount = kBlock / Type::kPerWord;
  uint32_t word[kCount];

  __device__ void load(const void* address, bool vectors) {
    if (vectors) {
#pragma unroll
      for (uint32_t i = 0; i < kCount / 4; ++i) {
        const uint4 four = static_cast<const uint4*>(address)[i];
        word[4 * i] = four.x;
        word[4 * i + 1] = four.y;
        word[4 * i + 2] = four.z;
        word[4 * i + 3] = four.w;
      }
      return;
    }
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      if constexpr (Type::kPerWord == 1) {
        word[i] = static_cast<const uint32_t*>(address)[i];
      } else {
        const uint16_t* halves = static_cast<const uint16_t*>(address);
        word[i] = halves[2 * i] | static_cast<uint32_t>(halves[2 * i + 1]) << 16;
      }
    }
  }

  __device__ void store(void* address, bool vectors) const {
    if (vectors) {
#pragma unroll
      for (uint32_t i = 0; i < kCount / 4; ++i) {
        static_cast<uint4*>(address)[i] =
            make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
      }
      return;
    }
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      if constexpr (Type::kPerWord == 1) {
        static_cast<uint32_t*>(address)[i] = word[i];
      } else {
        static_cast<uint16_t*>(address)[2 * i] = static_cast<uint16_t>(word[i]);
        static_cast<uint16_t*>(address)[2 * i + 1] = static_cast<uint16_t>(word[i] >> 16);
      }
    }
  }

  __device__ float value(uint32_t i) const {
    return Type::value(word[i / Type::kPerWord], i % Type::kPerWord);
  }
  __device__ void values(float (&x)[kBlock]) const {
#pragma unroll
    for (uint32_t i = 0; i < kBlock; ++i) x[i] = value(i);
  }
};

// First element of a block of a matrix with `ld` elements from row to row.
template <typename Type>
__device__ uint8_t* block_at(void* matrix, int64_t ld, uint64_t row, uint32_t block) {
  return static_cast<uint8_t*>(matrix) +
         (row * ld + static_cast<int64_t>(block) * kBlock) * Type::kBytes;
}

// ---- Codes and scales --------------------------------------------------------------------------

constexpr uint32_t kTileRows = 128, kTileScales = 4, kTileBytes = 512;

// Byte offset of the scale of block `block` of `row`.
__device__ inline int64_t scale_at(uint32_t row, uint32_t block, uint32_t blocks, bool tiles) {
  if (!tiles) return static_cast<int64_t>(row) * blocks + block;
  const uint32_t tiles_per_row = (blocks + kTileScales - 1) / kTileScales;
  const int64_t tile = static_cast<int64_t>(row / kTileRows) * tiles_per_row + block / kTileScales;
  return tile * kTileBytes + row % 32 * 16 + row % kTileRows / 32 * 4 + block % kTileScales;
}

// The scale of the block of 16 elements, or of the 32 of which it is one half.
__device__ inline int64_t scale_of_block(const Nvfp4Matrix& q, uint32_t row, uint32_t block,
                                         bool of_32) {
  return scale_at(row, block >> of_32, q.blocks >> of_32, q.scales_are_tiles != 0);
}

__device__ inline void store_scale(const Nvfp4Matrix& q, uint32_t row, uint32_t block, bool of_32,
                                   uint32_t scale) {
  q.scales[scale_of_block(q, row, block, of_32)] = static_cast<uint8_t>(scale);
}

__device__ inline void store_codes(uint8_t* to, uint32_t low, uint32_t high, bool vectors) {
  if (vectors) {
    *reinterpret_cast<uint2*>(to) = make_uint2(low, high);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    to[i] = static_cast<uint8_t>(low >> 8 * i);
    to[4 + i] = static_cast<uint8_t>(high >> 8 * i);
  }
}

// The lanes of a warp that have a block below written_blocks() call this together.
__device__ inline void store_block(const Nvfp4Matrix& q, uint32_t row, uint32_t block,
                                   const Block& b) {
  if (is_packed(q)) return store_token_block(q, row, block, b);
  store_codes(q.codes + row * q.codes_row_bytes + static_cast<int64_t>(block) * (kBlock / 2), b.low,
              b.high, q.vectors != 0);
  q.scales[scale_at(row, block, q.blocks, q.scales_are_tiles != 0)] = static_cast<uint8_t>(b.scale);
}

// Quantizes 16 elements to a UE8M0 scale and stores both. With MXFP4 two neighbouring threads share
// a scale, and one of them stores it.
__device__ inline void store_block_ue8m0(const Nvfp4Matrix& q, uint32_t format, bool floor,
                                         uint32_t row, uint32_t block, const float (&x)[kBlock]) {
  const bool shared = format == kFormatMxfp4;
  float largest = largest_magnitude(x);
  if (shared) largest = largest_of_pair(largest);
  const Block b = quantize_block_ue8m0(x, largest, floor);
  store_codes(q.codes + row * q.codes_row_bytes + static_cast<int64_t>(block) * (kBlock / 2), b.low,
              b.high, q.vectors != 0);
  if (!shared || block % 2 == 0) store_scale(q, row, block, shared, b.scale);
}

// ---- The tensor scale --------------------------------------------------------------------------

// The largest `bits` of a CTA, in every thread. The bits of magnitudes are ordered like their
// values.
template <uint32_t kMostThreads>
__device__ uint32_t largest_of_cta(uint32_t bits) {
  __shared__ uint32_t warps[kMostThreads / 32];
  const uint32_t warp = __reduce_max_sync(0xFFFFFFFF, bits);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = warp;
  __syncthreads();
  uint32_t largest = 0;
#pragma unroll
  for (uint32_t i = 0; i < kMostThreads / 32; ++i) {
    if (i < blockDim.x / 32) largest = max(largest, warps[i]);
  }
  return largest;
}

// amax / 2688, or 1 if that is 0: every element is then so small that its code is 0.
__device__ inline float scale_of_amax(float amax) {
  const float t = __fdiv_rn(amax, kLargestProduct);
  return t == 0.0f ? 1.0f : t;
}

// Called by all threads of the CTA.
__device__ inline TensorScale tensor_scale(const TensorScaleParams& p) {
  if (p.source == kTensorScaleValue) return tensor_scale_of(p.value);
  if (p.source != kTensorScaleAmax) return tensor_scale_of(*p.device);
  uint32_t bits = 0;
  for (uint32_t i = threadIdx.x; i < p.amax_ctas; i += kQuantizeThreads) {
    bits = max(bits, __float_as_uint(p.partial_amax[i]));
  }
  const float t = scale_of_amax(__uint_as_float(largest_of_cta<kQuantizeThreads>(bits)));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *p.device = t;
  return tensor_scale_of(t);
}

// True if each row has a tensor scale of its own, which is read.
__device__ inline bool is_of_rows(const TensorScaleParams& p) {
  return p.source >= kTensorScaleRows;
}
__device__ inline float scale_of_row(const TensorScaleParams& p, uint32_t row) {
  const float there = p.device[row];
  return p.source == kTensorScaleRows ? there : scale_of_amax(there);
}

// The larger of `largest` and the finite magnitudes of a block, as bits.
__device__ inline uint32_t largest_finite_of(const float (&x)[kBlock], uint32_t largest) {
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = magnitude_bits(x[i]);
    largest = max(largest, bits < kF32Infinity ? bits : 0);
  }
  return largest;
}

// Makes and stores the tensor scale of a row. Called by all threads of the CTA that has the row.
__device__ inline TensorScale make_scale_of_row(const TensorScaleParams& p, uint32_t row,
                                                uint32_t largest) {
  const float t = scale_of_amax(__uint_as_float(largest_of_cta<kRowThreads>(largest)));
  if (threadIdx.x == 0) p.device[row] = t;
  return tensor_scale_of(t);
}

}  // namespace nvfp4
