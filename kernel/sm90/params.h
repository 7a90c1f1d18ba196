// SPDX-License-Identifier: MIT
// The one argument of the sm_90a kernels, and what host and kernels agree on about tokens in the
// workspace. Plain C++, no CUDA.
#pragma once

#include "kernel/common/gate.h"
#include "kernel/common/groups.h"
#include "kernel/common/operand_format.h"
#include "kernel/common/params.h"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

constexpr uint32_t kSm90StageK = 256;  // K is cut between CTAs, and padded, in such pieces
// Tokens by TMA in tiles for so many of them come in boxes of no more rows than there are tokens.
constexpr uint32_t kTokensOfCutBox = 64;
constexpr uint32_t kTokenRowBytes = 128;  // one token of a slab: 64 elements in fp16
constexpr uint32_t kTokenKernelThreads = 128;
constexpr uint32_t kTokenKernelRegisters = 32;
constexpr uint32_t kTokenBytesPerThread = 64;  // of the workspace: a piece of 32 elements

struct Sm90Params {
#include "kernel/common/params.def"
  const uint8_t* token_codes;
  int64_t token_row_bytes, token_batch_bytes;
  void* token_slabs;     // fp16 tokens, in the caller's workspace (tokens_kernel.cuh)
  uint32_t whole_tiles;  // where several CTAs share a tile: the first tiles, each one CTA's alone
  uint32_t batches;      // up to here what a CTA reads before its first load: one line of constants
  EpilogueParams epilogue;
  uint16_t weight_scales_linear;  // 1: a row after the other, else 128x4 tiles
  uint8_t token_scales_linear;
  uint8_t weight_format;  // an OperandFormatNumber
  uint32_t m_padded;      // M rounded up to the token tile
};
NVFP4_CHECK_PARAMS(Sm90Params, 640);
static_assert(NVFP4_OFFSET_IS(Sm90Params, token_slabs, 368) &&
              NVFP4_OFFSET_IS(Sm90Params, whole_tiles, 376));
static_assert(NVFP4_OFFSET_IS(Sm90Params, epilogue, 384) &&
              NVFP4_OFFSET_IS(Sm90Params, token_scales_linear, 538));

// The argument of the entries for grouped products. In `gemm` batches are groups; A, C and D have
// no batches: their strides are 0.
struct Sm90GroupedParams {
  Sm90Params gemm;
  GroupParams groups;
};
static_assert(NVFP4_OFFSET_IS(Sm90GroupedParams, groups, sizeof(Sm90Params)));

// The argument of the entries for gated products. The box of both maps of weights has the rows of
// half a tile; what b2 has not of its own is that of b.
struct Sm90GatedParams {
  Sm90Params gemm;
  TensorMap weights2;
  const uint8_t* weight_scales2;
  GateParams gate;
};
static_assert(NVFP4_OFFSET_IS(Sm90GatedParams, weights2, sizeof(Sm90Params)) &&
              NVFP4_OFFSET_IS(Sm90GatedParams, gate, 776));

}  // namespace nvfp4
