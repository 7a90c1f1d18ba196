// SPDX-License-Identifier: MIT
// NVFP4 on the device besides the GEMM: quantize, dequantize, convert scales between layouts.
//
// CONTRACT
//   nvfp4_quantize_{f16,bf16,f32}    x [rows][16 * blocks] -> codes, scales. t is the tensor scale.
//       s = e4m3(amax of the block / 6 / t), code = e2m1(x / (s * t)); fp32, rounded to nearest
//       even. Or UE8M0 scales, of 16 or 32 elements (ue8m0.cuh)
//   nvfp4_quantize_4over6_{f16,..}   the same by NVFP4_SCALE_RULE_4OVER6, and t of each row
//   nvfp4_amax_{f16,bf16,f32}        the largest finite magnitude of x, one partial result per CTA
//   nvfp4_dequantize_{f16,bf16,f32}  x = round((code * s) * t)
//   nvfp4_dequantize_groups          the same to bf16, of the rows of groups alone
//   nvfp4_scale_convert              128x4 tiles or linear, to either
//   nvfp4_scale_groups               linear to 128x4 tiles; each group of rows begins a new tile
//   nvfp4_silu_mul_{f16,bf16,f32}    silu(x) * y -> codes, scales
//   nvfp4_rms_norm_{f16,bf16,f32}    RMSNorm of x, or of x + residual, which is stored -> the same
//   nvfp4_quantize_rows_{f16,..}     x, or silu(x) * y -> codes, scales, and t of each row
//   nvfp4_pack_weights               codes and scales to a packed order (docs/packing.md)
//   nvfp4_unpack_weights             and back
//   nvfp4_empty_sum                  D of a GEMM with K = 0: here, since one image serves every
//                                    device
//   It writes only codes and scales of blocks that exist; padding keeps its bytes.
//
// If t comes from x itself (kTensorScaleAmax), the first kernel leaves partial maxima in the
// workspace and every CTA of the second takes the largest. This needs no atomics and no cleared
// memory.
//
// A thread takes one block of 16 elements of a row, and neighbouring threads take neighbouring
// blocks, so a warp reads a run of 1 KiB (fp16) and writes one of 256 bytes. It loads its next
// block while it works on one. Grids may start before earlier work has ended and wait themselves;
// work that follows may start at once and waits likewise.
#include "kernel/common/group_list.cuh"
#include "kernel/helpers/empty_sum.cuh"
#include "kernel/helpers/finish.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/quantize/four_over_six.cuh"
#include "kernel/quantize/fused.cuh"
#include "kernel/quantize/matrix.cuh"
#include "kernel/quantize/pack.cuh"
#include "kernel/quantize/rows.cuh"

namespace nvfp4 {

// ---- Quantize ----------------------------------------------------------------------------------

// Handles a thread's blocks, the first of which is being loaded into `next`. A block beyond K is
// one of zeros. Each kind of scales has a loop of its own, otherwise the loop would need the
// registers of both.
template <typename Type, typename Store>
__device__ void each_block(const QuantizeParams& p, const Place& place, Words<Type>& next,
                           const Store& store) {
  const bool vectors = p.nvfp4.vectors != 0, there = place.block < p.nvfp4.blocks;
  for (uint32_t row = place.row; row < p.nvfp4.rows;) {
    float x[kBlock];
    next.values(x);
    const uint32_t next_row = row + place.row_step;
    if (there && next_row < p.nvfp4.rows) {
      next.load(block_at<Type>(p.x, p.x_ld, next_row, place.block), vectors);
    }
    store(row, x);
    row = next_row;
  }
}

template <typename Type>
__device__ void quantize(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const Place place;
  const bool vectors = p.nvfp4.vectors != 0, there = place.block < p.nvfp4.blocks;
  ptx::griddepcontrol_wait();
  Words<Type> next{};
  if (there && place.row < p.nvfp4.rows) {
    next.load(block_at<Type>(p.x, p.x_ld, place.row, place.block), vectors);
  }
  if (p.format != kFormatNvfp4) {
    if (!there) return;
    return each_block<Type>(p, place, next, [&](uint32_t row, const float(&x)[kBlock]) {
      store_block_ue8m0(p.nvfp4, p.format, p.floor_rule != 0, row, place.block, x);
    });
  }
  const TensorScale t = tensor_scale(p.scale);
  if (place.block >= written_blocks(p.nvfp4)) return;
  each_block<Type>(p, place, next, [&](uint32_t row, const float(&x)[kBlock]) {
    const bool of_row = is_of_rows(p.scale);
    const TensorScale its = of_row ? tensor_scale_of(scale_of_row(p.scale, row)) : t;
    store_block(p.nvfp4, row, place.block, quantize_block(x, its));
  });
}

// ---- The largest magnitude ---------------------------------------------------------------------

// Bits of the largest finite magnitude in fp32. Pairs are compared as integers as long as all are
// finite.
template <typename Type>
__device__ uint32_t largest_finite(const Words<Type>& words) {
  if constexpr (Type::kPerWord == 2) {
    uint32_t pair = 0;
#pragma unroll
    for (uint32_t i = 0; i < Words<Type>::kCount; ++i) {
      pair = max_u16x2(pair, words.word[i] & 0x7FFF7FFF);
    }
    const uint32_t one = max(pair >> 16, pair & 0xFFFF);
    if (one < Type::kInfinity) return __float_as_uint(Type::value(one, 0));
  }
  uint32_t largest = 0;
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = magnitude_bits(words.value(i));
    largest = max(largest, bits < kF32Infinity ? bits : 0);
  }
  return largest;
}

template <typename Type>
__device__ void find_amax(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const Place place;
  const bool vectors = p.nvfp4.vectors != 0;
  uint32_t largest = 0;
  ptx::griddepcontrol_wait();
  for (uint32_t block = place.block; block < p.nvfp4.blocks; block += gridDim.x * 32) {
    for (uint32_t row = place.row; row < p.nvfp4.rows; row += place.row_step) {
      Words<Type> words;
      words.load(block_at<Type>(p.x, p.x_ld, row, block), vectors);
      largest = max(largest, largest_finite(words));
    }
  }
  const uint32_t bits = largest_of_cta<kQuantizeThreads>(largest);
  if (threadIdx.x == 0) {
    p.scale.partial_amax[blockIdx.y * gridDim.x + blockIdx.x] = __uint_as_float(bits);
  }
}

// ---- Dequantize --------------------------------------------------------------------------------

// A block of row `row` of a batch, to row `to` of x; t is the row's tensor scale.
template <typename Type>
__device__ void dequantize_block(const QuantizeParams& p, uint64_t batch, uint32_t row,
                                 uint32_t block, uint64_t to, float t) {
  const Nvfp4Matrix& q = p.nvfp4;
  const bool ue8m0 = p.format != kFormatNvfp4;
  const uint32_t code = q.scales[batch * p.scales_batch_bytes +
                                 scale_of_block(q, row, block, p.format == kFormatMxfp4)];
  // Before 9.0 e4m3_value() returns 480 for NaN.
  const float scale =
      (code & kScaleNan) == kScaleNan ? __uint_as_float(0x7FFFFFFF) : e4m3_value(code & kScaleNan);
  const uint8_t* codes = q.codes + batch * p.codes_batch_bytes + row * q.codes_row_bytes +
                         static_cast<int64_t>(block) * (kBlock / 2);
  Words<Type> x{};
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint32_t element = codes[i / 2] >> i % 2 * 4 & 15;
    const float value = ue8m0 ? dequantized_ue8m0(element, code)
                              : __fmul_rn(__fmul_rn(e2m1_value(element), scale), t);
    x.word[i / Type::kPerWord] |= Type::round(value) << i % Type::kPerWord * 16;
  }
  x.store(block_at<Type>(p.x, p.x_ld, to, block), q.vectors != 0);
}

// A block of packed tokens.
template <typename Type>
__device__ void dequantize_tokens(const QuantizeParams& p, uint32_t row, uint32_t block, float t) {
  Words<Type> x{};
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) {
    const float value = __fmul_rn(token_value(p.nvfp4, row, block, i), t);
    x.word[i / Type::kPerWord] |= Type::round(value) << i % Type::kPerWord * 16;
  }
  x.store(block_at<Type>(p.x, p.x_ld, row, block), p.nvfp4.vectors != 0);
}

template <typename Type>
__device__ void dequantize(const QuantizeParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const Place place;
  const Nvfp4Matrix& q = p.nvfp4;
  ptx::griddepcontrol_wait();
  const float of_all = p.scale.source == kTensorScaleValue ? p.scale.value : *p.scale.device;
  if (place.block >= q.blocks) return;
  const uint64_t rows = static_cast<uint64_t>(q.rows) * p.batches;
  for (uint64_t at = place.row; at < rows; at += place.row_step) {
    const uint64_t batch = p.batches == 1 ? 0 : at / q.rows;
    const uint32_t row = static_cast<uint32_t>(at - batch * q.rows);
    const float t = is_of_rows(p.scale) ? scale_of_row(p.scale, row) : of_all;
    if (is_packed(q)) {
      dequantize_tokens<Type>(p, row, place.block, t);
    } else {
      dequantize_block<Type>(p, batch, row, place.block, at, t);
    }
  }
}

// Calls f(tile, block) in each lane for tile after tile of the CTA: up to kRows rows of a group and
// 32 blocks. Rows of no group are in none.
template <uint32_t kRows, typename F>
__device__ void each_tile_of_groups(const GroupParams& groups, uint32_t blocks, const F& f) {
  __shared__ GroupListMemory memory;
  const GroupList<kRows> list{groups, (blocks + 31) / 32, ptx::shared_address(&memory)};
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  if (threadIdx.x / 32 == 0) list.make();
  __syncthreads();
  for (uint32_t index = blockIdx.x; index < list.all_tiles(); index += gridDim.x) {
    const TileCoordinate tile = list.tile_at(index);
    const uint32_t block = tile.weight_tile * 32 + threadIdx.x % 32;
    if (block < blocks) f(tile, block);
  }
}

// Each row of a group to its own row of x.
template <typename Type>
__device__ void dequantize_groups(const DequantizeGroupsParams& p) {
  const QuantizeParams& of = p.quantized;
  each_tile_of_groups<kDequantizedRows>(
      p.groups, of.nvfp4.blocks, [&](const TileCoordinate& tile, uint32_t block) {
        const uint32_t end = min(tile.row_end, tile.token_tile + kDequantizedRows);
        for (uint32_t row = tile.token_tile + threadIdx.x / 32; row < end; row += kQuantizeWarps) {
          dequantize_block<Type>(of, 0, row, block, row, of.scale.value);
        }
      });
}

// ---- Scales ------------------------------------------------------------------------------------

__device__ inline void convert_scales(const ScaleConvertParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const Place place;
  ptx::griddepcontrol_wait();
  if (place.block >= p.blocks) return;
  const uint64_t rows = static_cast<uint64_t>(p.rows) * p.batches;
  for (uint64_t i = place.row; i < rows; i += place.row_step) {
    const uint64_t batch = p.batches == 1 ? 0 : i / p.rows;
    const uint32_t row = static_cast<uint32_t>(i - batch * p.rows);
    p.to[batch * p.to_batch_bytes + scale_at(row, place.block, p.blocks, p.to_tiles != 0)] =
        p.from[batch * p.from_batch_bytes +
               scale_at(row, place.block, p.blocks, p.from_tiles != 0)];
  }
}

__device__ inline void tile_scales_of_groups(const ScaleGroupsParams& p) {
  each_tile_of_groups<kScaleTileRows>(
      p.groups, p.blocks, [&](const TileCoordinate& tile, uint32_t block) {
        const uint32_t rows = min(tile.row_end - tile.token_tile, kScaleTileRows);
#pragma unroll 8
        for (uint32_t row = threadIdx.x / 32; row < rows; row += kQuantizeWarps) {
          p.to[scale_at(tile.scale_row + row, block, p.blocks, true)] =
              p.from[scale_at(tile.token_tile + row, block, p.blocks, false)];
        }
      });
}

}  // namespace nvfp4

#define NVFP4_ENTRY(name, threads, params_type, function)       \
  extern "C" __global__ void __launch_bounds__(threads)         \
      name(const __grid_constant__ nvfp4::params_type params) { \
    nvfp4::function(params);                                    \
  }
#define NVFP4_ENTRIES(type, Type)                                                                 \
  NVFP4_ENTRY(nvfp4_quantize_##type, nvfp4::kQuantizeThreads, QuantizeParams,                     \
              quantize<nvfp4::Type>)                                                              \
  NVFP4_ENTRY(nvfp4_amax_##type, nvfp4::kQuantizeThreads, QuantizeParams, find_amax<nvfp4::Type>) \
  NVFP4_ENTRY(nvfp4_dequantize_##type, nvfp4::kQuantizeThreads, QuantizeParams,                   \
              dequantize<nvfp4::Type>)                                                            \
  NVFP4_ENTRY(nvfp4_silu_mul_##type, nvfp4::kQuantizeThreads, FusedParams, silu_mul<nvfp4::Type>) \
  NVFP4_ENTRY(nvfp4_quantize_rows_##type, nvfp4::kRowThreads, FusedParams,                        \
              quantize_rows<nvfp4::Type>)                                                         \
  NVFP4_ENTRY(nvfp4_quantize_4over6_##type, nvfp4::kQuantizeThreads, QuantizeParams,              \
              quantize_4over6<nvfp4::Type>)                                                       \
  NVFP4_ENTRY(nvfp4_rms_norm_##type, nvfp4::kNormThreads, FusedParams, rms_norm<nvfp4::Type>)

NVFP4_ENTRIES(f16, F16)
NVFP4_ENTRIES(bf16, Bf16)
NVFP4_ENTRIES(f32, F32)
NVFP4_ENTRY(nvfp4_scale_convert, nvfp4::kQuantizeThreads, ScaleConvertParams, convert_scales)
// In the images of the family that launches it (host/run/quantizer_entries.def).
#if __CUDA_ARCH__ / 100 == 9
NVFP4_ENTRY(nvfp4_dequantize_groups, nvfp4::kQuantizeThreads, DequantizeGroupsParams,
            dequantize_groups<nvfp4::Bf16>)
#elif __CUDA_ARCH__ / 100 == 10 || __CUDA_ARCH__ / 100 == 11
NVFP4_ENTRY(nvfp4_scale_groups, nvfp4::kQuantizeThreads, ScaleGroupsParams, tile_scales_of_groups)
#endif
NVFP4_ENTRY(nvfp4_pack_weights, nvfp4::kPackThreads, PackParams, pack_weights)
NVFP4_ENTRY(nvfp4_unpack_weights, nvfp4::kPackThreads, PackParams, unpack_weights)
NVFP4_ENTRY(nvfp4_empty_sum, nvfp4::kEmptySumThreads, EmptySumParams, store_empty_sums)
NVFP4_ENTRY(nvfp4_finish, nvfp4::kFinishThreads, FinishParams, finish)
NVFP4_ENTRY(nvfp4_finish_rows, nvfp4::kFinishThreads, FinishParams, finish_rows<false>)
NVFP4_ENTRY(nvfp4_finish_gated, nvfp4::kFinishThreads, FinishParams, finish_rows<true>)
NVFP4_ENTRY(nvfp4_finish_swiglu, nvfp4::kFinishThreads, FinishParams, finish_swiglu)
