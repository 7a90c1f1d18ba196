// SPDX-License-Identifier: MIT
// The one argument of every GEMM kernel, written by host/plan, read by the kernel. Plain C++, no
// CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

// A CUtensorMap: 128 opaque bytes, 64-byte aligned (CUDA driver API, cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

// Weights are B [L][N][K], tokens are A [L][M][K]; D is [L][M][N].
//
// Tensor maps: UINT8, rank 3 {K/2 bytes, rows, L}, box {128, tile rows, 1}, 128-byte swizzle, zero
// fill. Scales: 128x4 tiles of 512 bytes, ceil(K/64) per block of 128 rows.
struct GemmParams {
  TensorMap weights;
  TensorMap tokens;
  const uint8_t* weight_scales;
  const uint8_t* token_scales;
  int64_t weight_scales_batch_bytes;
  int64_t token_scales_batch_bytes;
  void* d;
  int64_t d_ld;            // elements
  int64_t d_batch_stride;  // elements
  uint32_t m, n, k;        // k a multiple of 64
  uint32_t tiles_m, tiles_n;
  float alpha;
};
static_assert(sizeof(GemmParams) == 384, "host and device agree on the layout");

}  // namespace nvfp4
