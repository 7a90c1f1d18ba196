// SPDX-License-Identifier: MIT
// D in E2M1 with generated scales. The lanes that hold a block's columns find its scale together,
// and each stores its four codes. The bits are those of quantizing the unrounded fp32 values
// (block.cuh): UE4M3 scales by its expressions, UE8M0 scales by the exponent of the largest value.
#pragma once

#include <cstdint>

#include "kernel/common/block.cuh"
#include "kernel/common/epilogue.h"
#include "kernel/common/scale_tile.h"
#include "kernel/ptx/memory.cuh"

namespace nvfp4 {

__device__ inline bool has_scales(uint32_t type) { return type >= kTypeNvfp4; }

// A block's scale, and the divisor of its elements.
struct ScaleOfD {
  uint32_t byte;
  float step, reciprocal;
  bool by_quotients;  // otherwise divisions: something overflows or is subnormal
  bool zeros;         // all codes are +0
};

__device__ inline ScaleOfD with_step(ScaleOfD s, const TensorScale& t) {
  s.zeros = s.byte == 0 || s.byte == kScaleNan;
  s.step = __fmul_rn(e4m3_value(s.byte), t.t);
  s.reciprocal = __frcp_rn(s.step);
  return s;
}

// s = e4m3(amax / 6 / t); elements are divided by s * t. There is no division; the result is right
// only if `by_quotients` is set.
__device__ inline ScaleOfD ue4m3_by_quotients(float largest, const TensorScale& t) {
  ScaleOfD s;
  s.by_quotients = t.plain && (is_plain(largest) || largest == 0);
  const float sixth = quotient(largest, kLargestElement, 1.0f / kLargestElement);
  s.byte = e4m3_code(quotient(sixth, t.t, t.reciprocal));
  return with_step(s, t);
}

__device__ inline ScaleOfD ue4m3_of_d(float largest, const TensorScale& t) {
  ScaleOfD s = ue4m3_by_quotients(largest, t);
  if (s.by_quotients) return s;
  s.byte = e4m3_code(__fdiv_rn(__fdiv_rn(largest, kLargestElement), t.t));
  if (largest != largest) s.byte = kScaleNan;
  return with_step(s, t);
}

// The byte is the exponent of amax, less the 2 of E2M1's largest binade, one more above 1.5 of its
// power of two unless scales are floored. Both factors are powers of two: a quotient is exact, or
// so small that its code is 0.
__device__ inline ScaleOfD ue8m0_of_d(float largest, bool floors) {
  constexpr uint32_t kHalf = 0x400000, kFraction = 0x7FFFFF, kNan = 255, kOfInfinity = 254;
  const uint32_t bits = __float_as_uint(largest), exponent = bits >> 23;
  const uint32_t up = !floors && (bits & kFraction) > kHalf ? 1 : 0;
  ScaleOfD s;
  s.byte = max(exponent + up, 2u) - 2;
  s.by_quotients = bits < kF32Infinity;
  if (!s.by_quotients) s.byte = bits == kF32Infinity ? kOfInfinity : kNan;
  s.zeros = bits == 0 || bits > kF32Infinity;
  s.step = __uint_as_float(s.byte == 0 ? kHalf : s.byte << 23);
  s.reciprocal = __uint_as_float((254 - s.byte) << 23);
  return s;
}

// An infinity becomes 6 even if the step is infinite too.
__device__ inline float divided(float x, const ScaleOfD& s) {
  if (s.by_quotients) return quotient(x, s.step, s.reciprocal);
  return magnitude_bits(x) == kF32Infinity ? x : __fdiv_rn(x, s.step);
}

// The largest magnitude of a block, or NaN if an element is NaN. Its lanes are neighbours: 4, or 8
// for 32 columns. Only they are in the mask, since other lanes may have no row left.
__device__ inline float largest_of_block(const float (&x)[4], bool is_wide) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t lanes = is_wide ? 0xFFu << (lane & 24) : 0xFu << (lane & 28);
  float largest = max_nan(max_nan(fabsf(x[0]), fabsf(x[1])), max_nan(fabsf(x[2]), fabsf(x[3])));
  largest = max_nan(largest, __shfl_xor_sync(lanes, largest, 1));
  largest = max_nan(largest, __shfl_xor_sync(lanes, largest, 2));
  if (is_wide) largest = max_nan(largest, __shfl_xor_sync(lanes, largest, 4));
  return largest;
}

__device__ inline ScaleOfD scale_of_d(const EpilogueParams& e, float largest,
                                      const TensorScale& t) {
  return e.d_type == kTypeNvfp4 ? ue4m3_of_d(largest, t)
                                : ue8m0_of_d(largest, e.d_scale_floors != 0);
}
// The same without a division. If that is not possible, `by_quotients` of the result is false.
__device__ inline ScaleOfD scale_of_d_by_quotients(const EpilogueParams& e, float largest,
                                                   const TensorScale& t) {
  return e.d_type == kTypeNvfp4 ? ue4m3_by_quotients(largest, t)
                                : ue8m0_of_d(largest, e.d_scale_floors != 0);
}

// Byte offset of scale s of a row within a batch.
__device__ inline int64_t scale_of_d_at(const EpilogueParams& e, uint32_t m, uint32_t s) {
  constexpr uint32_t kScales = kScaleTileK / 16;
  if (e.d_scales_are_tiles == 0) return static_cast<int64_t>(m) * e.d_scales_per_row + s;
  const uint32_t tiles = (e.d_scales_per_row + kScales - 1) / kScales;
  const uint64_t tile = scale_tile_number(m / kScaleTileRows, tiles, s / kScales);
  return static_cast<int64_t>(tile * kScaleTileBytes) + scale_lane(m) +
         scale_band(m % kScaleTileRows) + s % kScales;
}

// What the rows of a group have of their own in a D with scales.
struct ScalesOfGroup {
  uint32_t shift = 0;                   // from a row of D to its row of scales in 128x4 tiles
  const float* tensor_scale = nullptr;  // NULL: as for every row
};

__device__ inline TensorScale tensor_scale_of_d(const EpilogueParams& e,
                                                const float* of_group = nullptr) {
  if (of_group == nullptr && e.d_tensor_scale == nullptr) return {1, 1, true};
  const float* const at = of_group == nullptr ? e.d_tensor_scale : of_group;
  return tensor_scale_of(__uint_as_float(ptx::ld_global_b32_if(at, true)));
}

// The scale of the block that column n is in.
__device__ inline void store_scale_of_d(const EpilogueParams& e, uint32_t batch, uint32_t m,
                                        uint32_t n, const ScaleOfD& s) {
  const uint32_t block = e.d_type == kTypeMxfp4 ? 32 : 16;
  e.d_scales[batch * e.d_scales_batch_bytes + scale_of_d_at(e, m, n / block)] =
      static_cast<uint8_t>(s.byte);
}

// Stores the codes of columns n to n+3 of row m. The first lane of a block also stores its scale.
// `element` is the index of column n in D; `aligned` says that the two bytes are aligned.
__device__ inline void put_scaled_four(const EpilogueParams& e, void* d, int64_t element,
                                       uint32_t batch, uint32_t m, uint32_t n, bool aligned,
                                       uint32_t codes, const ScaleOfD& s) {
  uint8_t* const to = static_cast<uint8_t*>(d) + element / 2;
  if (aligned) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(codes);
  } else {
    to[0] = static_cast<uint8_t>(codes);
    to[1] = static_cast<uint8_t>(codes >> 8);
  }
  if (n % (e.d_type == kTypeMxfp4 ? 32 : 16) == 0) store_scale_of_d(e, batch, m, n, s);
}

// Quantizes and stores columns n to n+3 of row m. The tensor scale is loaded anew, because there
// are no registers to keep it.
__device__ inline void store_scaled_four(const EpilogueParams& e, void* d, int64_t element,
                                         uint32_t batch, uint32_t m, uint32_t n, bool aligned,
                                         float (&x)[4], const ScalesOfGroup& of_group = {}) {
  const ScaleOfD s = scale_of_d(e, largest_of_block(x, e.d_type == kTypeMxfp4),
                                tensor_scale_of_d(e, of_group.tensor_scale));
  uint32_t codes = 0;
  if (!s.zeros) {
#pragma unroll
    for (float& one : x) one = divided(one, s);
    codes = four_e2m1(x);
  }
  put_scaled_four(e, d, element, batch, m + of_group.shift, n, aligned, codes, s);
}

}  // namespace nvfp4
