// SPDX-License-Identifier: MIT
// The argument of the sm_100a kernels. Plain C++, no CUDA.
#pragma once

#include "kernel/common/divisor.h"
#include "kernel/common/gate.h"
#include "kernel/common/groups.h"
#include "kernel/common/operand_format.h"
#include "kernel/common/params.h"

namespace nvfp4 {

struct Sm100Params {
#include "kernel/common/params.def"
  EpilogueParams epilogue;
  Divisor by_tiles_m, by_tiles_n;     // index of a CTA
  uint16_t d_by_tma;                  // 1: d_map is valid, and D is stored through it
  uint8_t operand_format;             // an OperandFormatNumber
  uint8_t log2_steps_per_scale_tile;  // 1 if 32 elements share a scale instead of 16
  uint32_t tiles;                     // number of tiles of all batches
  // Divisors for tiles of two CTAs (walk.cuh): tiles of a batch, tiles of a group of token tiles,
  // and tiles per weight tile in the last group.
  Divisor by_batch, by_group, by_last_group;
  uint64_t token_policy;   // cache policy for loads of tokens and their scales, see below
  uint32_t log2_box_rows;  // of a grouped product: rows of a box of tokens
  // Bytes of a unit at weight_scales: a tile of scales, or a unit of packed weights. For the latter
  // `weights` is a map in a tile of two CTAs: UINT64, rank 3 {512 bytes, pieces of 512 bytes,
  // batches or 1}, box {512 bytes, pieces of a k-block, 1}, no swizzle, zero fill.
  uint32_t weight_unit_bytes;
  // {N, M, L} of UINT16 or UINT32, or {M, N, L} by columns; box {32, 32, 1}, or half of its rows.
  TensorMap d_map;
  // For tiles of two CTAs: UINT64, rank 3 {tiles of a block, blocks of 128 rows, batches or 1}, box
  // {a stage's 4 tiles, 2 of MXFP4, 1, 1}, no swizzle, zero fill.
  TensorMap weight_scale_map, token_scale_map;
};
NVFP4_CHECK_PARAMS(Sm100Params, 1024);
static_assert(NVFP4_OFFSET_IS(Sm100Params, epilogue, 344));
static_assert(NVFP4_OFFSET_IS(Sm100Params, d_by_tma, 528) &&
              NVFP4_OFFSET_IS(Sm100Params, tiles, 532) && NVFP4_OFFSET_IS(Sm100Params, d_map, 640));

// The argument of the entries for grouped products. In `gemm` batches are groups; A, its scales, C
// and D have no batches: their strides are 0.
struct Sm100GroupedParams {
  Sm100Params gemm;
  GroupParams groups;
};
static_assert(NVFP4_OFFSET_IS(Sm100GroupedParams, groups, sizeof(Sm100Params)));

// The cache policies of kernel/ptx/tma.cuh. Tokens are kept in the L2 if all of them are a small
// part of it, and otherwise are treated as any other data.
constexpr uint64_t kTokensEvictedLast = 0x14F0000000000000;
constexpr uint64_t kTokensEvictedAsOthers = 0x16F0000000000000;

// The argument of the entries for gated products. Everything that b2 does not have itself is the
// same as for b.
struct Sm100GatedParams {
  Sm100Params gemm;
  TensorMap weights2;
  const uint8_t* weight_scales2;
  GateParams gate;
};
static_assert(NVFP4_OFFSET_IS(Sm100GatedParams, weights2, sizeof(Sm100Params)) &&
              NVFP4_OFFSET_IS(Sm100GatedParams, gate, 1160));

// The argument of the entries for grouped gated products.
struct Sm100GroupedGatedParams {
  Sm100GatedParams gated;
  GroupParams groups;
};
static_assert(NVFP4_OFFSET_IS(Sm100GroupedGatedParams, groups, sizeof(Sm100GatedParams)));

// The argument of an entry, by what it computes, and the common part of it.
template <bool kGrouped, bool kGated>
struct Sm100Argument {
  using Params = Sm100Params;
};
template <>
struct Sm100Argument<true, false> {
  using Params = Sm100GroupedParams;
};
template <>
struct Sm100Argument<false, true> {
  using Params = Sm100GatedParams;
};
template <>
struct Sm100Argument<true, true> {
  using Params = Sm100GroupedGatedParams;
};
NVFP4_HOST_DEVICE constexpr const Sm100Params& gemm_of(const Sm100Params& p) { return p; }
NVFP4_HOST_DEVICE constexpr const Sm100Params& gemm_of(const Sm100GroupedParams& p) {
  return p.gemm;
}
NVFP4_HOST_DEVICE constexpr const Sm100Params& gemm_of(const Sm100GatedParams& p) { return p.gemm; }
NVFP4_HOST_DEVICE constexpr const Sm100Params& gemm_of(const Sm100GroupedGatedParams& p) {
  return p.gated.gemm;
}

constexpr uint32_t kTokenGroup = 8;         // token tiles
constexpr uint32_t kScaleMapElements = 64;  // 8-byte elements in a tile of scales
constexpr uint32_t kBoxSide = 32;           // rows and columns of D in a box: a warp's sub-tile
// Rows of D in a box of the general epilogue, and of 4-byte elements in a CTA with several tiles.
constexpr uint32_t kHalfBoxRows = 16;

}  // namespace nvfp4
