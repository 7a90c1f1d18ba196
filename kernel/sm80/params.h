// SPDX-License-Identifier: MIT
// The argument of the mma.sync kernels for tokens in fp16 or bf16. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.h"
#include "kernel/common/gate.h"
#include "kernel/common/groups.h"
#include "kernel/common/host_device.h"
#include "kernel/common/offset.h"

namespace nvfp4 {

constexpr uint32_t kSm80AddThreads = 128;  // threads per CTA of the kernel that adds partitions

// Weights are B [L][N][K], tokens are A [L][M][K]; D is [L][M][N].
struct Sm80Params {
  const uint8_t* weights;        // E2M1 codes
  const uint8_t* weight_scales;  // UE4M3, or as log2_of_ue8m0 says
  const uint8_t* tokens;         // fp16 or bf16
  void* d;
  float* partitions;  // workspace of images without clusters: [tile][K partition][token][weight]
  int64_t weight_row_bytes, weight_batch_bytes;
  int64_t weight_scales_batch_bytes;
  int64_t token_row_bytes, token_batch_bytes;
  int64_t d_batch_stride;  // elements
  uint32_t m, n, k;        // k a multiple of 16
  uint32_t tiles_m, tiles_n, batches;
  uint32_t split;  // K partitions of each tile, at most as many as there are k-blocks
  float alpha;
  uint32_t weights_are_static;  // 1: no earlier grid writes them, they may be loaded before its end
  uint32_t scales_are_linear;   // 1: rows of K / 16 bytes, or K / 32; 0: 128x4 tiles
  EpilogueParams epilogue;
  // 0: UE4M3 scales of 16 elements. Else UE8M0 ones, beside bf16 tokens, in images without
  // clusters: 4 of 16 elements, 5 of 32.
  uint32_t log2_of_ue8m0;
};
static_assert(sizeof(Sm80Params) == 304 && NVFP4_OFFSET_IS(Sm80Params, d_batch_stride, 80) &&
              NVFP4_OFFSET_IS(Sm80Params, split, 112) &&
              NVFP4_OFFSET_IS(Sm80Params, epilogue, 128) &&
              NVFP4_OFFSET_IS(Sm80Params, log2_of_ue8m0, 296));

// The argument of the entries for grouped products, which may be gated. In `gemm` batches are
// groups; A, C and D have no batches: their strides are 0. A tile of a gated product has 32 rows of
// b, then the same 32 rows of b2.
struct Sm80GroupedParams {
  Sm80Params gemm;
  GroupParams groups;
  GateParams gate;
  // From the first row of a tile to the 33rd: of its codes, and of its scales.
  int64_t half_bytes, half_scales_bytes;
  uint32_t columns;  // of D in a tile: 32 if the product is gated, 64 otherwise
};
static_assert(NVFP4_OFFSET_IS(Sm80GroupedParams, groups, sizeof(Sm80Params)) &&
              NVFP4_OFFSET_IS(Sm80GroupedParams, half_bytes, 408));

// The argument of an entry, and the common part of it.
template <bool kGrouped>
struct Sm80Argument {
  using Params = Sm80Params;
};
template <>
struct Sm80Argument<true> {
  using Params = Sm80GroupedParams;
};
NVFP4_HOST_DEVICE constexpr const Sm80Params& gemm_of(const Sm80Params& p) { return p; }
NVFP4_HOST_DEVICE constexpr const Sm80Params& gemm_of(const Sm80GroupedParams& p) { return p.gemm; }

}  // namespace nvfp4
