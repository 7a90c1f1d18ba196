// SPDX-License-Identifier: MIT
// The general epilogue of all families: from fp32 sums in shared memory to D of any type and order,
// with C, bias, tensor scales and activation (epilogue.h). Each family also has its own fast
// epilogue.
//
// A thread takes four neighbouring columns of some rows. A kernel inlines this code in one or two
// places where the sums have left the registers. As a called function it would read the parameters
// from memory, one after the other, for each row. Also, ptxas 13.0 let a function called in one arm
// of a divergent branch overwrite uniform registers of the other arm (docs/notebook.md, "The
// general epilogue on an H200").
#pragma once

#include <cstdint>

#include "kernel/common/activation.cuh"
#include "kernel/common/amax.cuh"
#include "kernel/common/epilogue.h"
#include "kernel/common/scaled_d.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"

namespace nvfp4 {

// Location of a thread's sums, and their place in D: columns n .. n+3 of rows m, m + m_step, ..
// below m_end.
struct SumRows {
  uint32_t at = 0, step = 0;  // address of four sums; bytes to those of the next row
  uint32_t batch = 0, n = 0, m = 0, m_step = 1, m_end = 0;
};

__device__ inline float load_scalar(const float* pointer) {
  return __uint_as_float(ptx::ld_global_b32_if(pointer, true));
}

__device__ inline uint32_t log2_bytes(uint32_t type) { return type == kTypeF32 ? 2 : 1; }

__device__ inline float widen(uint32_t type, uint32_t bits) {
  if (type == kTypeF32) return __uint_as_float(bits);
  return type == kTypeBf16 ? __uint_as_float(bits << 16) : ptx::cvt_f32_f16(bits);
}

// Loads are coherent, since C may be D. 0 if there is no such element.
__device__ inline float load_element(const void* array, uint32_t type, int64_t index, bool there) {
  const uint8_t* at = static_cast<const uint8_t*>(array) + (index << log2_bytes(type));
  if (type == kTypeF32) return __uint_as_float(ptx::ld_global_b32_if(at, there));
  return widen(type, ptx::ld_global_u16_if(at, there));
}

// Four elements `step` apart, of which `count` exist. `vectors`: all exist, contiguous and aligned.
// The result is the loaded bits: fp32, or pairs of 16 bits if they are contiguous.
__device__ inline uint4 load_bits_of_four(const void* array, uint32_t type, int64_t index,
                                          int64_t step, uint32_t count, bool vectors) {
  if (vectors) {
    const uint8_t* at = static_cast<const uint8_t*>(array) + (index << log2_bytes(type));
    if (type == kTypeF32) return ptx::ld_global_v4_b32_halves(at, 2);
    const uint2 four = ptx::ld_global_v2_b32(at);
    return make_uint4(four.x, four.y, 0, 0);
  }
  const auto bits = [&](uint32_t i) {
    return __float_as_uint(load_element(array, type, index + i * step, i < count));
  };
  return make_uint4(bits(0), bits(1), bits(2), bits(3));
}

__device__ inline void unpack_four(uint4 bits, uint32_t type, bool vectors, float (&x)[4]) {
  const bool pairs = vectors && type != kTypeF32;
  x[0] = pairs ? widen(type, bits.x & 0xFFFF) : __uint_as_float(bits.x);
  x[1] = pairs ? widen(type, bits.x >> 16) : __uint_as_float(bits.y);
  x[2] = pairs ? widen(type, bits.y & 0xFFFF) : __uint_as_float(bits.z);
  x[3] = pairs ? widen(type, bits.y >> 16) : __uint_as_float(bits.w);
}

// The same for types of 16 bits.
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

// Destination of a thread's results: D directly, or a staging buffer in shared memory that TMA
// stores.
struct ToD {
  static constexpr bool kMayBeStaging = false;
};
struct ToStaging {
  static constexpr bool kMayBeStaging = true;
  bool used;              // false: results go directly to D
  uint32_t at;            // address of the first four results
  uint32_t step, column;  // bytes to those of the next row; bytes to the next of the four
};

__device__ inline void put_four(const ToStaging& to, uint32_t type, const float (&x)[4]) {
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

// alpha, times A's tensor scale if all rows have the same one.
__device__ inline float scale_of_rows(const EpilogueParams& e, float alpha) {
  const float scale = e.alpha_device == nullptr ? alpha : load_scalar(e.alpha_device);
  if (e.a_tensor_scale == nullptr || e.a_scale_per_row != 0) return scale;
  return __fmul_rn(scale, load_scalar(e.a_tensor_scale));
}

// The tensor scale of B for a thread's columns, which share one. If there is none it is 1, which
// changes no product.
__device__ inline float scale_of_columns(const EpilogueParams& e, uint32_t n) {
  if (e.b_tensor_scale == nullptr) return 1.0f;
  return load_scalar(e.b_tensor_scale + n / e.columns_a_factor);
}

// alpha times the tensor scales of a thread's columns. If A has a tensor scale for each row, it is
// multiplied in between.
struct ColumnScale {
  float scale = 0, b_scale = 1;

  __device__ ColumnScale() {}
  __device__ ColumnScale(float of_rows, float of_columns) : scale(of_rows), b_scale(of_columns) {}
  __device__ ColumnScale(const EpilogueParams& e, float alpha, uint32_t n)
      : scale(scale_of_rows(e, alpha)), b_scale(scale_of_columns(e, n)) {
    if (e.a_scale_per_row == 0) scale = __fmul_rn(scale, b_scale);
  }
  __device__ float of_row(float a_scale) const {
    return __fmul_rn(__fmul_rn(scale, a_scale), b_scale);
  }
};

__device__ inline float beta_of(const EpilogueParams& e) {
  return e.beta_device == nullptr ? e.beta : load_scalar(e.beta_device);
}

// Type of C if C is read. It is not read if beta is 0, compared by bits since a subnormal beta is
// not 0.
__device__ inline uint32_t type_of_c(const EpilogueParams& e, float beta) {
  return (__float_as_uint(beta) & 0x7FFFFFFF) == 0 ? kTypeNone : e.c_type;
}

// Values that all rows of a thread's columns share. An earlier grid may write the scalars and the
// bias. `alpha` is that of the product, or of the rows' group, whose bias begins at element
// `bias_first` of all biases.
struct GeneralColumns {
  ColumnScale factors;
  float beta;
  uint32_t c_type;  // of C if it is read
  float bias[4];
  ScalesOfGroup d_scales;

  template <typename Params>
  __device__ GeneralColumns(const Params& p, float alpha, uint32_t n, int64_t bias_first = 0)
      : beta(0), c_type(kTypeNone), bias{0, 0, 0, 0} {
    const EpilogueParams& e = p.epilogue;
    if (n >= p.n) return;
    ptx::griddepcontrol_wait();
    factors = ColumnScale(e, alpha, n);
    beta = beta_of(e);
    c_type = type_of_c(e, beta);
    if (e.bias_type == kTypeNone || e.bias_per_row != 0) return;
    const uint32_t count = min(p.n - n, 4u);
    unpack_four(load_bits_of_four(e.bias, e.bias_type, bias_first + n, 1, count, false),
                e.bias_type, false, bias);
  }
};

// Address of the tensor scale of a row of A, if each row has its own.
template <typename Params>
__device__ const float* row_scale_at(const Params& p, uint32_t batch, uint32_t m) {
  return p.epilogue.a_tensor_scale + (static_cast<uint64_t>(batch) * p.m + m);
}

// Prefetches C of a thread's columns, in some of the rows, to L1.
template <typename Params>
__device__ void ask_for_c_of_rows(const Params& p, const SumRows& rows, uint32_t c_type) {
  const EpilogueParams& e = p.epilogue;
  if (c_type == kTypeNone) return;  // also beyond N
  const int64_t first = rows.batch * e.c_batch_stride + rows.n * e.c_column;
  for (uint32_t m = rows.m; m < rows.m_end; m += rows.m_step) {
    const int64_t bytes = (first + m * e.c_row) << log2_bytes(c_type);
    ptx::prefetch_global_l1(static_cast<const uint8_t*>(e.c) + bytes);
  }
}

// `factor` is a power of two that the kernel's sums lack. kRowsOfC rows of C are loaded before the
// first of them is used; otherwise each row would wait for its own load. They move on from register
// to register, so that the code for a row exists once. kScales is false if D has no scales.
// kRowScales is false if A's factors of rows have already been applied to the sums. Otherwise they
// and the factors of B are loaded anew for each row, because registers are scarce.
template <uint32_t kRowsOfC = 1, bool kRowScales = true, bool kScales = true, typename Params,
          typename To = ToD>
__device__ __forceinline__ void store_general(const Params& p, SumRows rows, GeneralColumns columns,
                                              float factor, To to = {}) {
  const EpilogueParams& e = p.epilogue;
  const uint32_t n = rows.n, c_type = columns.c_type;
  if (n >= p.n) return;
  const uint32_t count = min(p.n - n, 4u);
  const int64_t d_first = rows.batch * p.d_batch_stride + n * e.d_column;
  const int64_t c_first = rows.batch * e.c_batch_stride + n * e.c_column;
  const auto vectors = [&](int64_t row, int64_t column, int64_t stride) {
    return count == 4 && column == 1 && ((row | stride) & 3) == 0;
  };
  const bool d_vectors = vectors(e.d_row, e.d_column, p.d_batch_stride);
  const bool c_vectors = vectors(e.c_row, e.c_column, e.c_batch_stride);
  uint4 c_bits[kRowsOfC];
  Amax amax;
  uint32_t row = 0;
#pragma unroll 1
  for (uint32_t m = rows.m; m < rows.m_end; m += rows.m_step, rows.at += rows.step, ++row) {
    if (c_type != kTypeNone && !c_vectors) {
      c_bits[0] = load_bits_of_four(e.c, c_type, c_first + m * e.c_row, e.c_column, count, false);
    } else if (c_type != kTypeNone && row % kRowsOfC == 0) {
#pragma unroll
      for (uint32_t i = 0; i < kRowsOfC; ++i) {
        const uint32_t at = m + i * rows.m_step;
        if (at >= rows.m_end) break;
        c_bits[i] = load_bits_of_four(e.c, c_type, c_first + at * e.c_row, 1, 4, true);
      }
    }
    float scale = columns.factors.scale;
    if constexpr (kRowScales) {
      if (e.a_scale_per_row != 0) {
        scale = ColumnScale(scale, scale_of_columns(e, n))
                    .of_row(load_scalar(row_scale_at(p, rows.batch, m)));
      }
    }
    const float4 sum = ptx::ld_shared_v4_f32(rows.at);
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (float& one : x) one = __fmul_rn(scale, __fmul_rn(one, factor));
    if (c_type != kTypeNone) {
      float c[4];
      unpack_four(c_bits[0], c_type, c_vectors, c);
#pragma unroll
      for (uint32_t i = 1; i < kRowsOfC; ++i) c_bits[i - 1] = c_bits[i];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fmaf_rn(columns.beta, c[i], x[i]);
    }
    if (e.bias_type != kTypeNone) {
      float(&bias)[4] = columns.bias;
      if (e.bias_per_row != 0) {
        bias[0] = bias[1] = bias[2] = bias[3] = load_element(e.bias, e.bias_type, m, true);
      }
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fadd_rn(x[i], bias[i]);
    }
    if (e.activation != kActivationNone) {
      activate(e.activation % kTakesAmax, x);
      if (has_amax(e)) amax.take(p, rows.batch, m, count, x);
    }
    if (kScales && has_scales(e.d_type)) {
      store_scaled_four(e, p.d, d_first + m * e.d_row, rows.batch, m, n, d_vectors, x,
                        columns.d_scales);
      continue;
    }
    if constexpr (To::kMayBeStaging) {
      if (to.used) {
        put_four(to, e.d_type, x);
        to.at += to.step;
        continue;
      }
    }
    store_four(p.d, e.d_type, d_first + m * e.d_row, e.d_column, count, d_vectors, x);
  }
  if (has_amax(e)) amax.put(e);
}

}  // namespace nvfp4
