// SPDX-License-Identifier: MIT
// Argument of the kernels that make D of sums in the workspace (kernel/helpers/finish.cuh). Plain
// C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.h"
#include "kernel/common/gate.h"

namespace nvfp4 {

struct FinishParams {
  const float* sums;          // [batch][row][column]; of a gated product those with b
  int64_t sums_ld;            // elements, a multiple of 4
  int64_t sums_batch_stride;  // elements; of a gated product to the sums with b2
  void* d;
  int64_t d_batch_stride;  // elements
  uint32_t m, n;
  float alpha;
  uint32_t rows;  // of D that a CTA makes: kFinishRows, or fewer where that gives too few CTAs
  EpilogueParams epilogue;
  GateParams gate;
};
static_assert(sizeof(FinishParams) == 264 && NVFP4_OFFSET_IS(FinishParams, epilogue, 56));

constexpr uint32_t kFinishThreads = 256;
constexpr uint32_t kFinishRows = 32, kFinishColumns = 128;  // of D that a CTA makes, at most
constexpr uint32_t kFinishFewRows = 8;

}  // namespace nvfp4
