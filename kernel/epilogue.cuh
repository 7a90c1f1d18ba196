// SPDX-License-Identifier: MIT
// The general epilogue, of both kernels: fp32 sums in shared memory to D of any type and order,
// with C, bias, factors and activation (epilogue.h). D in fp16 of alpha times the sum has a way of
// its own in each kernel.
//
// A thread takes four neighbouring columns of some rows. A kernel calls this once per thread, or
// once per part of a tile: it is a function of its own, so that its code and its registers are
// there once.
#pragma once

#include <cstdint>

#include "kernel/activation.cuh"
#include "kernel/epilogue.h"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

// Where a thread's sums lie, and what of D they are: columns n .. n+3 of rows m, m + m_step, ..
// below m_end.
struct SumRows {
  uint32_t at, step;  // in shared memory: four sums; bytes to those of the next row
  uint32_t batch, n, m, m_step, m_end;
};

__device__ inline float load_scalar(const float* pointer) {
  return __uint_as_float(ptx::ld_global_b32_if(pointer, true));
}

__device__ inline uint32_t log2_bytes(uint32_t type) { return type == kTypeF32 ? 2 : 1; }

__device__ inline float widen(uint32_t type, uint32_t bits) {
  if (type == kTypeF32) return __uint_as_float(bits);
  return type == kTypeBf16 ? __uint_as_float(bits << 16) : ptx::cvt_f32_f16(bits);
}

// Loads are coherent ones, since C may be D. 0 where there is nothing.
__device__ inline float load_element(const void* array, uint32_t type, int64_t index, bool there) {
  const uint8_t* at = static_cast<const uint8_t*>(array) + (index << log2_bytes(type));
  if (type == kTypeF32) return __uint_as_float(ptx::ld_global_b32_if(at, there));
  return widen(type, ptx::ld_global_u16_if(at, there));
}

// Four elements `step` apart, of which `count` exist; `vectors`: all do, side by side and aligned.
__device__ inline void load_four(const void* array, uint32_t type, int64_t index, int64_t step,
                                 uint32_t count, bool vectors, float (&x)[4]) {
  if (vectors) {
    const uint8_t* at = static_cast<const uint8_t*>(array) + (index << log2_bytes(type));
    if (type == kTypeF32) {
      const uint4 four = ptx::ld_global_v4_b32_halves(at, 2);
      x[0] = __uint_as_float(four.x);
      x[1] = __uint_as_float(four.y);
      x[2] = __uint_as_float(four.z);
      x[3] = __uint_as_float(four.w);
      return;
    }
    const uint2 four = ptx::ld_global_v2_b32(at);
    x[0] = widen(type, four.x & 0xFFFF);
    x[1] = widen(type, four.x >> 16);
    x[2] = widen(type, four.y & 0xFFFF);
    x[3] = widen(type, four.y >> 16);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) x[i] = load_element(array, type, index + i * step, i < count);
}

// Of a type of 16 bits.
__device__ inline uint2 narrow_four(uint32_t type, const float (&x)[4]) {
  const bool bf16 = type == kTypeBf16;
  return make_uint2(bf16 ? ptx::cvt_rn_bf16x2_f32(x[1], x[0]) : ptx::cvt_rn_f16x2_f32(x[1], x[0]),
                    bf16 ? ptx::cvt_rn_bf16x2_f32(x[3], x[2]) : ptx::cvt_rn_f16x2_f32(x[3], x[2]));
}

__device__ inline void store_four(void* d, uint32_t type, int64_t index, int64_t step,
                                  uint32_t count, bool vectors, const float (&x)[4]) {
  uint8_t* at = static_cast<uint8_t*>(d) + (index << log2_bytes(type));
  if (type == kTypeF32) {
    float* out = reinterpret_cast<float*>(at);
    if (vectors) {
      *reinterpret_cast<float4*>(out) = make_float4(x[0], x[1], x[2], x[3]);
      return;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      if (i < count) out[i * step] = x[i];
    }
    return;
  }
  const uint2 words = narrow_four(type, x);
  if (vectors) {
    *reinterpret_cast<uint2*>(at) = words;
    return;
  }
  uint16_t* out = reinterpret_cast<uint16_t*>(at);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t word = i < 2 ? words.x : words.y;
    if (i < count) out[i * step] = static_cast<uint16_t>(i % 2 == 0 ? word : word >> 16);
  }
}

// Where a thread's results go: straight to D, or to a slab of shared memory, from which TMA brings
// them there.
struct ToD {
  static constexpr bool kMayBeSlab = false;
};
struct ToSlab {
  static constexpr bool kMayBeSlab = true;
  uint32_t at;            // of the first four; 0: straight to D
  uint32_t step, column;  // bytes to those of the next row, to the next one of the four
};

__device__ inline void put_four(const ToSlab& to, uint32_t type, const float (&x)[4]) {
  if (type == kTypeF32) {
    if (to.column == 4) {
      ptx::st_shared_v4_f32(to.at, make_float4(x[0], x[1], x[2], x[3]));
      return;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) ptx::st_shared_f32(to.at + i * to.column, x[i]);
    return;
  }
  const uint2 words = narrow_four(type, x);
  if (to.column == 2) {
    ptx::st_shared_v2_b32(to.at, words);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t word = i < 2 ? words.x : words.y;
    ptx::st_shared_b16(to.at + i * to.column,
                       static_cast<uint16_t>(i % 2 == 0 ? word : word >> 16));
  }
}

// One activation in the code, for all four.
__device__ inline void activate_four(uint32_t activation, float (&x)[4]) {
  if (activation == kActivationNone) return;
#pragma unroll 1
  for (uint32_t i = 0; i < 4; ++i) {
    const float first = activate(activation, x[0]);
    x[0] = x[1];
    x[1] = x[2];
    x[2] = x[3];
    x[3] = first;
  }
}

// alpha times the factors of a thread's columns, which share one of B's.
__device__ inline float scale_of(const EpilogueParams& e, float alpha, uint32_t n) {
  float scale = e.alpha_device == nullptr ? alpha : load_scalar(e.alpha_device);
  if (e.a_tensor_scale != nullptr) scale = __fmul_rn(scale, load_scalar(e.a_tensor_scale));
  if (e.b_tensor_scale == nullptr) return scale;
  return __fmul_rn(scale, load_scalar(e.b_tensor_scale + n / e.columns_a_factor));
}

__device__ inline float beta_of(const EpilogueParams& e) {
  return e.beta_device == nullptr ? e.beta : load_scalar(e.beta_device);
}

// Of C where it is read: not where beta is 0, by bits, since a subnormal one is not.
__device__ inline uint32_t type_of_c(const EpilogueParams& e, float beta) {
  return (__float_as_uint(beta) & 0x7FFFFFFF) == 0 ? kTypeNone : e.c_type;
}

// `factor` is a power of two that the kernel's sums lack. Scalars, C and bias may be what an
// earlier grid writes.
template <typename Params, typename To>
__device__ __forceinline__ void store_general_here(const Params& p, SumRows rows, float factor,
                                                   To to) {
  const EpilogueParams& e = p.epilogue;
  const uint32_t n = rows.n;
  if (n >= p.n) return;
  ptx::griddepcontrol_wait();
  const uint32_t count = min(p.n - n, 4u);
  const float scale = scale_of(e, p.alpha, n);
  const float beta = beta_of(e);
  const uint32_t c_type = type_of_c(e, beta);
  const int64_t d_first = rows.batch * p.d_batch_stride + n * e.d_column;
  const int64_t c_first = rows.batch * e.c_batch_stride + n * e.c_column;
  const auto vectors = [&](int64_t row, int64_t column, int64_t stride) {
    return count == 4 && column == 1 && ((row | stride) & 3) == 0;
  };
  const bool d_vectors = vectors(e.d_row, e.d_column, p.d_batch_stride);
  const bool c_vectors = vectors(e.c_row, e.c_column, e.c_batch_stride);
  float bias[4];
  if (e.bias_type != kTypeNone && e.bias_per_row == 0) {
    load_four(e.bias, e.bias_type, n, 1, count, false, bias);
  }
#pragma unroll 1
  for (uint32_t m = rows.m; m < rows.m_end; m += rows.m_step, rows.at += rows.step) {
    const float4 sum = ptx::ld_shared_v4_f32(rows.at);
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (float& one : x) one = __fmul_rn(scale, __fmul_rn(one, factor));
    if (c_type != kTypeNone) {
      float c[4];
      load_four(e.c, c_type, c_first + m * e.c_row, e.c_column, count, c_vectors, c);
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fmaf_rn(beta, c[i], x[i]);
    }
    if (e.bias_type != kTypeNone) {
      if (e.bias_per_row != 0) {
        bias[0] = bias[1] = bias[2] = bias[3] = load_element(e.bias, e.bias_type, m, true);
      }
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fadd_rn(x[i], bias[i]);
    }
    activate_four(e.activation, x);
    if constexpr (To::kMayBeSlab) {
      if (to.at != 0) {
        put_four(to, e.d_type, x);
        to.at += to.step;
        continue;
      }
    }
    store_four(p.d, e.d_type, d_first + m * e.d_row, e.d_column, count, d_vectors, x);
  }
}

// One code for all that is stored, which the loops over K are not compiled together with.
template <typename Params, typename To = ToD>
__device__ __noinline__ void store_general(const Params& p, SumRows rows, float factor,
                                           To to = {}) {
  store_general_here(p, rows, factor, to);
}

}  // namespace nvfp4
