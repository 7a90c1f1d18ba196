// SPDX-License-Identifier: MIT
// C in the general epilogue of 10.x: a lane has some rows of one column.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/packed_f32.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm100/lane_rows.cuh"
#include "kernel/sm100/params.h"

namespace nvfp4 {

// C of a lane's column. Where it begins is found once, before the sums are there.
struct LaneC {
  uint32_t type = kTypeNone;  // none: C is not read
  float beta = 0;
  const uint8_t* row0 = nullptr;  // none: nor is the lane's column
  int64_t step = 0;               // bytes to the next row

  __device__ LaneC(const Sm100Params& p, uint32_t batch, uint32_t n) {
    const EpilogueParams& e = p.epilogue;
    if (e.c_type == kTypeNone) return;
    ptx::griddepcontrol_wait();
    beta = beta_of(e);
    type = type_of_c(e, beta);
    const uint32_t shift = log2_bytes(e.c_type);
    step = e.c_row << shift;
    if (n >= p.n) return;
    row0 =
        static_cast<const uint8_t*>(e.c) + ((batch * e.c_batch_stride + n * e.c_column) << shift);
  }

  // Loads the bits of the first `rows` rows from m on. Nothing waits for them yet. The addresses
  // depend on each other in four steps only.
  __device__ void load(uint32_t m, uint32_t rows, uint32_t (&bits)[kHalfRows]) const {
    const uint8_t* at[kHalfRows];
    at[0] = row0 + m * step;
#pragma unroll
    for (uint32_t distance = 1; distance < kHalfRows; distance *= 2) {
#pragma unroll
      for (uint32_t i = 0; i < distance; ++i) at[distance + i] = at[i] + distance * step;
    }
    if (row0 == nullptr) rows = 0;
    const auto word = [](const uint8_t* from, bool there) {
      return ptx::ld_global_b32_if(from, there);
    };
    const auto half = [](const uint8_t* from, bool there) {
      return ptx::ld_global_u16_if(from, there);
    };
    if (type == kTypeF32) {
      load_rows(at, rows, word, bits);
    } else {
      load_rows(at, rows, half, bits);
    }
  }

  // Most often there are all rows, and no predicate is needed.
  template <typename Load>
  __device__ static void load_rows(const uint8_t* const (&at)[kHalfRows], uint32_t rows,
                                   const Load& load, uint32_t (&bits)[kHalfRows]) {
    if (rows == kHalfRows) {
#pragma unroll
      for (uint32_t i = 0; i < kHalfRows; ++i) bits[i] = load(at[i], true);
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kHalfRows; ++i) bits[i] = load(at[i], i < rows);
    }
  }

  __device__ void add(const uint32_t (&bits)[kHalfRows], LaneRows& x) const {
    const ptx::F32x2 factor = ptx::both(beta);
    const auto add_as = [&](uint32_t its_type) {
      each_two(x, [&](ptx::F32x2 two, uint32_t i) {
        return ptx::fma(factor, ptx::pack(widen(its_type, bits[i]), widen(its_type, bits[i + 1])),
                        two);
      });
    };
    if (type == kTypeF32) {
      add_as(kTypeF32);
    } else if (type == kTypeBf16) {
      add_as(kTypeBf16);
    } else {
      add_as(kTypeF16);
    }
  }
};

}  // namespace nvfp4
