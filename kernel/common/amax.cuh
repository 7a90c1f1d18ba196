// SPDX-License-Identifier: MIT
// Stores the largest |act(x)| of D and of its rows, before D is rounded, into variables that the
// caller has cleared. Non-negative fp32 numbers are ordered like their bits as integers, and NaN,
// 0x7FFFFFFF, is the largest. So any order of threads, warps and CTAs gives the same bits.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.h"
#include "kernel/common/numbers.cuh"
#include "kernel/ptx/memory.cuh"

namespace nvfp4 {

__device__ inline bool has_amax(const EpilogueParams& e) { return e.activation >= kTakesAmax; }

// All of these lanes take part. One of them combines the largest of their values with *to.
__device__ inline void add_amax(float* to, uint32_t lanes, float largest) {
  const int32_t bits = __reduce_max_sync(lanes, __float_as_int(largest));
  if ((lanes & ((1u << threadIdx.x % 32) - 1)) == 0) ptx::red_global_max_s32(to, bits);
}

// The maxima of a thread: four columns of some rows, one row after the other.
class Amax {
 public:
  // x has columns of row m of a batch. The first `count` of them exist.
  template <typename Params>
  __device__ void take(const Params& p, uint32_t batch, uint32_t m, uint32_t count,
                       const float (&x)[4]) {
    const EpilogueParams& e = p.epilogue;
    float largest = fabsf(x[0]);  // max.NaN gives every NaN the same bits
#pragma unroll
    for (uint32_t i = 1; i < 4; ++i) largest = max_nan(largest, i < count ? fabsf(x[i]) : 0.0f);
    of_all_ = max_nan(of_all_, largest);
    if (e.d_row_amax == nullptr) return;
    const uint32_t lanes = __match_any_sync(__activemask(), m);
    add_amax(e.d_row_amax + (static_cast<uint64_t>(batch) * p.m + m), lanes, largest);
  }
  // Call this after the last row.
  __device__ void put(const EpilogueParams& e) const {
    if (e.d_amax != nullptr) add_amax(e.d_amax, __activemask(), of_all_);
  }

 private:
  float of_all_ = 0;
};

}  // namespace nvfp4
