// SPDX-License-Identifier: MIT
// NVFP4 on the device, beside the GEMM: quantize, dequantize, scales of one layout to the other.
//
// CONTRACT
//   nvfp4_quantize_{f16,bf16,f32}    x [rows][16 * blocks] -> codes, scales. t is the tensor scale.
//       s = e4m3(amax of the block / 6 / t), code = e2m1(x / (s * t)); fp32, rounded to nearest even
//   nvfp4_amax_{f16,bf16,f32}        the largest finite magnitude of x, one part a CTA
//   nvfp4_dequantize_{f16,bf16,f32}  x = round((code * s) * t)
//   nvfp4_scale_convert              128x4 tiles or linear, to either
//   Nothing but codes and scales of the blocks that exist is written: padding keeps its bytes.
//
// With t from x itself (kTensorScaleAmax) the first kernel leaves its parts in the workspace, and every
// CTA of the second takes their maximum: no atomics, and nothing to be cleared before.
//
// A thread takes one block of 16 elements of a row; neighbours take neighbours, so a warp reads a run
// of 1 KiB (fp16) and writes one of 256 bytes. Grids may start before earlier work has ended and wait
// by themselves; what follows may start at once and waits likewise.
#include "kernel/ptx/sync.cuh"
#include "kernel/quantize/numbers.cuh"
#include "kernel/quantize/params.h"

namespace nvfp4 {

constexpr uint32_t kTileRows = 128, kTileScales = 4, kTileBytes = 512;

// Byte of the scale of block `block` of `row`.
__device__ inline int64_t scale_at(uint32_t row, uint32_t block, uint32_t blocks, bool tiles) {
  if (!tiles) return static_cast<int64_t>(row) * blocks + block;
  const uint32_t tiles_per_row = (blocks + kTileScales - 1) / kTileScales;
  const int64_t tile = static_cast<int64_t>(row / kTileRows) * tiles_per_row + block / kTileScales;
  return tile * kTileBytes + row % 32 * 16 + row % kTileRows / 32 * 4 + block % kTileScales;
}

// ---- Elements ----------------------------------------------------------------------------------

// The bits of element i of what was loaded as 32-bit words.
template <typename Type>
__device__ uint32_t element(const uint32_t (&words)[kBlock * Type::kBytes / 4], uint32_t i) {
  if constexpr (Type::kBytes == 4) return words[i];
  const uint32_t word = words[i / 2];
  return i % 2 == 0 ? word & 0xFFFF : word >> 16;
}

template <typename Type>
__device__ void load_block(const QuantizeParams& p, uint32_t row, uint32_t block,
                           float (&x)[kBlock]) {
  constexpr uint32_t kWords = kBlock * Type::kBytes / 4;
  const uint8_t* from = static_cast<const uint8_t*>(p.x) +
                        (row * p.x_ld + static_cast<int64_t>(block) * kBlock) * Type::kBytes;
  if (p.vectors != 0) {
    uint32_t words[kWords];
#pragma unroll
    for (uint32_t i = 0; i < kWords / 4; ++i) {
      const uint4 four = reinterpret_cast<const uint4*>(from)[i];
      words[4 * i] = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
#pragma unroll
    for (uint32_t i = 0; i < kBlock; ++i) x[i] = Type::value(element<Type>(words, i));
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    if constexpr (Type::kBytes == 4) {
      x[i] = reinterpret_cast<const float*>(from)[i];
    } else {
      x[i] = Type::value(reinterpret_cast<const uint16_t*>(from)[i]);
    }
  }
}

// ---- The tensor scale --------------------------------------------------------------------------

// The largest `bits` of a CTA, in every thread. Of magnitudes bits are ordered like values.
template <uint32_t kThreads>
__device__ uint32_t largest_of_cta(uint32_t bits) {
  __shared__ uint32_t warps[kThreads / 32];
  const uint32_t warp = __reduce_max_sync(0xFFFFFFFF, bits);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = warp;
  __syncthreads();
  uint32_t largest = 0;
#pragma unroll
  for (uint32_t i = 0; i < kThreads / 32; ++i) largest = max(largest, warps[i]);
  return largest;
}

// amax / 2688, or 1 where that is 0: then every element is so small that its code is 0.
__device__ inline float scale_of_amax(float amax) {
  const float t = __fdiv_rn(amax, kLargestProduct);
  return t == 0.0f ? 1.0f : t;
}

__device__ inline float tensor_scale(const QuantizeParams& p) {
  if (p.tensor_scale_source == kTensorScaleValue) return p.tensor_scale;
  if (p.tensor_scale_source == kTensorScalePointer) return *p.tensor_scale_device;
  uint32_t bits = 0;
  for (uint32_t i = threadIdx.x; i < p.amax_ctas; i += kQuantizeThreads) {
    bits = max(bits, __float_as_uint(p.partial_amax[i]));
  }
  const float t = scale_of_amax(__uint_as_float(largest_of_cta<kQuantizeThreads>(bits)));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *p.tensor_scale_device = t;
  return t;
}

template <typename Type>
__device__ void find_amax(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const uint64_t all = static_cast<uint64_t>(p.rows) * p.blocks;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kAmaxThreads;
  uint32_t largest = 0;
  for (uint64_t i = blockIdx.x * kAmaxThreads + threadIdx.x; i < all; i += step) {
    const uint32_t row = static_cast<uint32_t>(i / p.blocks);
    float x[kBlock];
    load_block<Type>(p, row, static_cast<uint32_t>(i - static_cast<uint64_t>(row) * p.blocks), x);
#pragma unroll
    for (uint32_t j = 0; j < kBlock; ++j) {
      const uint32_t bits = magnitude_bits(x[j]);
      largest = max(largest, bits < kF32Infinity ? bits : 0);
    }
  }
  const uint32_t bits = largest_of_cta<kAmaxThreads>(largest);
  if (threadIdx.x == 0) p.partial_amax[blockIdx.x] = __uint_as_float(bits);
}

// ---- Quantize ----------------------------------------------------------------------------------

// A block's scale code. A NaN in it makes it NaN, which would otherwise vanish among the elements.
__device__ inline uint32_t block_scale(const float (&x)[kBlock], float t) {
  uint32_t largest = 0;
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) largest = max(largest, magnitude_bits(x[i]));
  if (largest > kF32Infinity) return kScaleNan;
  return e4m3_code(__fdiv_rn(__fdiv_rn(__uint_as_float(largest), 6.0f), t));
}

// Eight codes, the first in the lowest bits. An infinity is 6 even where the step is infinite, too.
__device__ inline uint32_t eight_codes(const float* x, float step) {
  uint32_t codes = 0;
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    const bool infinite = magnitude_bits(x[i]) == kF32Infinity;
    codes |= e2m1_code(infinite ? x[i] : __fdiv_rn(x[i], step)) << 4 * i;
  }
  return codes;
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

template <typename Type>
__device__ void quantize_block(const QuantizeParams& p, uint32_t row, uint32_t block, float t) {
  float x[kBlock];
  load_block<Type>(p, row, block, x);
  const uint32_t scale = block_scale(x, t);
  uint32_t low = 0, high = 0;
  if (scale != 0 && scale != kScaleNan) {
    const float step = __fmul_rn(e4m3_value(scale), t);
    low = eight_codes(x, step);
    high = eight_codes(x + 8, step);
  }
  store_codes(p.codes + row * p.codes_row_bytes + static_cast<int64_t>(block) * (kBlock / 2), low,
              high, p.vectors != 0);
  p.scales[scale_at(row, block, p.blocks, p.scales_are_tiles != 0)] = static_cast<uint8_t>(scale);
}

template <typename Type>
__device__ void quantize(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const float t = tensor_scale(p);  // by all threads
  const uint32_t block = blockIdx.x * kQuantizeThreads + threadIdx.x;
  if (block >= p.blocks) return;
  for (uint32_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    quantize_block<Type>(p, row, block, t);
  }
}

// ---- Dequantize --------------------------------------------------------------------------------

template <typename Type>
__device__ void dequantize(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const float t = tensor_scale(p);
  const uint32_t block = blockIdx.x * kQuantizeThreads + threadIdx.x;
  if (block >= p.blocks) return;
  for (uint32_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    const uint32_t code = p.scales[scale_at(row, block, p.blocks, p.scales_are_tiles != 0)];
    const float scale = e4m3_value(code & 0x7F);
    const uint8_t* codes =
        p.codes + row * p.codes_row_bytes + static_cast<int64_t>(block) * (kBlock / 2);
    uint8_t* to = static_cast<uint8_t*>(p.x) +
                  (row * p.x_ld + static_cast<int64_t>(block) * kBlock) * Type::kBytes;
#pragma unroll
    for (uint32_t i = 0; i < kBlock; ++i) {
      const float value = __fmul_rn(e2m1_value(codes[i / 2] >> i % 2 * 4 & 15), scale);
      const uint32_t bits = Type::round(__fmul_rn(value, t));
      if constexpr (Type::kBytes == 4) {
        reinterpret_cast<uint32_t*>(to)[i] = bits;
      } else {
        reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(bits);
      }
    }
  }
}

// ---- Scales ------------------------------------------------------------------------------------

__device__ inline void convert_scales(const ScaleConvertParams& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const uint32_t block = blockIdx.x * kQuantizeThreads + threadIdx.x;
  if (block >= p.blocks) return;
  for (uint32_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    p.to[scale_at(row, block, p.blocks, p.to_tiles != 0)] =
        p.from[scale_at(row, block, p.blocks, p.from_tiles != 0)];
  }
}

}  // namespace nvfp4

#define NVFP4_QUANTIZE_ENTRIES(name, Type)                                            \
  extern "C" __global__ void __launch_bounds__(nvfp4::kQuantizeThreads)               \
      nvfp4_quantize_##name(const __grid_constant__ nvfp4::QuantizeParams params) {   \
    nvfp4::quantize<nvfp4::Type>(params);                                             \
  }                                                                                   \
  extern "C" __global__ void __launch_bounds__(nvfp4::kAmaxThreads)                   \
      nvfp4_amax_##name(const __grid_constant__ nvfp4::QuantizeParams params) {       \
    nvfp4::find_amax<nvfp4::Type>(params);                                            \
  }                                                                                   \
  extern "C" __global__ void __launch_bounds__(nvfp4::kQuantizeThreads)               \
      nvfp4_dequantize_##name(const __grid_constant__ nvfp4::QuantizeParams params) { \
    nvfp4::dequantize<nvfp4::Type>(params);                                           \
  }

NVFP4_QUANTIZE_ENTRIES(f16, F16)
NVFP4_QUANTIZE_ENTRIES(bf16, Bf16)
NVFP4_QUANTIZE_ENTRIES(f32, F32)

extern "C" __global__ void __launch_bounds__(nvfp4::kQuantizeThreads)
    nvfp4_scale_convert(const __grid_constant__ nvfp4::ScaleConvertParams params) {
  nvfp4::convert_scales(params);
}
