// SPDX-License-Identifier: MIT
// The one argument of every GEMM kernel, written by host/plan, read by the kernel. Plain C++, no
// CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nvfp4 {

// A CUtensorMap: 128 opaque bytes. The hardware asks for 64-byte alignment; cuda.h gives it 128.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

constexpr uint32_t kScaleTileK = 64;      // elements of K of a 128x4 scale tile
constexpr uint32_t kScaleTileRows = 128;  // its rows
constexpr uint32_t kScaleTileBytes = 512;
constexpr uint32_t kTokenRowBytes = 128;  // one token of a slab: 64 elements in fp16
constexpr uint32_t kSm90StageK = 256;     // K is cut between CTAs, and padded, in such pieces
constexpr uint32_t kTokenKernelThreads = 128;
constexpr uint32_t kTokenKernelRegisters = 32;
constexpr uint32_t kTokenBytesPerThread = 64;  // of the workspace: a piece of 32 elements

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
  uint32_t weights_are_static;  // 1: no earlier grid writes them, they may be loaded before its end
  // sm_90a only; sm_100a reads tokens through the tensor map and never splits K.
  uint32_t split;  // CTAs that share a tile along K: a cluster
  const uint8_t* token_codes;
  int64_t token_row_bytes, token_batch_bytes;
  void* token_slabs;  // fp16 tokens, in the caller's workspace (sm90/tokens_kernel.cuh)
  uint32_t m_padded;  // M rounded up to the token tile
  uint32_t batches;
};
// Host and device compilers agree on the layout.
static_assert(sizeof(GemmParams) == 384 && alignof(GemmParams) == 128);
static_assert(offsetof(GemmParams, tokens) == 128 && offsetof(GemmParams, d) == 288);
static_assert(offsetof(GemmParams, m) == 312 && offsetof(GemmParams, alpha) == 332);
static_assert(offsetof(GemmParams, weights_are_static) == 336);
static_assert(offsetof(GemmParams, token_slabs) == 368 && offsetof(GemmParams, m_padded) == 376);

}  // namespace nvfp4
