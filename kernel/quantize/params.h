// SPDX-License-Identifier: MIT
// Arguments of the kernels that quantize, dequantize and convert scales. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/groups.h"
#include "kernel/common/offset.h"
#include "kernel/common/operand_format.h"

namespace nvfp4 {

constexpr uint32_t kQuantizeWarps = 4;  // warps of a CTA, one row of the matrix each
constexpr uint32_t kQuantizeThreads = 32 * kQuantizeWarps;
constexpr uint32_t kNormThreads = 256;  // threads for one row: columns of the sum of squares
constexpr uint32_t kRowThreads = 256;   // limit of threads in a CTA that makes its row's scale
// Blocks of such a row that a thread keeps in registers.
template <uint32_t kElementBytes>
constexpr uint32_t kKeptOfRow = kElementBytes == 4 ? 1 : 2;
constexpr uint32_t kMostAmaxCtas = 1024;       // each leaves one fp32 in the workspace
constexpr float kLargestProduct = 448 * 6.0f;  // the largest scale times the largest element

// Source of the tensor scale.
enum TensorScaleSource : uint32_t {
  kTensorScaleValue,    // value
  kTensorScalePointer,  // *device
  kTensorScaleAmax,     // partial maxima; the scale is stored to *device
  // The others have a tensor scale for each row, device[row].
  kTensorScaleRowAmax,      // made from the row and stored there
  kTensorScaleRows,         // read from there
  kTensorScaleFromRowAmax,  // made from the amax stored there
};
struct TensorScaleParams {
  float* device;
  float* partial_amax;  // amax_ctas elements
  float value;
  uint32_t source;
  uint32_t amax_ctas;
};

// The NVFP4 form of a matrix [rows][16 * blocks].
struct Nvfp4Matrix {
  uint8_t* codes;  // packed tokens if there are no scales (tokens.cuh)
  int64_t codes_row_bytes;
  uint8_t* scales;
  uint32_t rows, blocks;
  uint32_t scales_are_tiles;  // 128x4 tiles; otherwise linear
  uint32_t vectors;           // rows of codes are aligned to 8 bytes, matrices to 16
};

struct QuantizeParams {
  void* x;
  int64_t x_ld;  // elements
  Nvfp4Matrix nvfp4;
  TensorScaleParams scale;
  uint32_t format;      // an OperandFormatNumber
  uint32_t floor_rule;  // UE8M0 scales: 1 clips elements above 6 scales
  // Dequantization handles `batches` matrices, whose elements are stored without gaps.
  int64_t codes_batch_bytes, scales_batch_bytes;
  uint32_t batches;
};
static_assert(sizeof(QuantizeParams) == 120 && NVFP4_OFFSET_IS(QuantizeParams, scale, 56) &&
              NVFP4_OFFSET_IS(QuantizeParams, floor_rule, 92) &&
              NVFP4_OFFSET_IS(QuantizeParams, batches, 112));

// Dequantizes the rows of groups alone, each to the same row of x. A CTA takes tile after tile of
// up to that many rows of a group. The tensor scale is a value.
constexpr uint32_t kDequantizedRows = 16;
struct DequantizeGroupsParams {
  QuantizeParams quantized;
  GroupParams groups;
};
static_assert(NVFP4_OFFSET_IS(DequantizeGroupsParams, groups, 120));

// silu(x) * y, or RMSNorm of x, with an optional residual y.
struct FusedParams {
  void* x;
  int64_t x_ld;
  void* y;
  int64_t y_ld;
  void* weight;  // 16 * blocks elements
  Nvfp4Matrix nvfp4;
  TensorScaleParams scale;
  float k, epsilon;
  uint32_t format, floor_rule;  // as in QuantizeParams
};
static_assert(sizeof(FusedParams) == 128 && NVFP4_OFFSET_IS(FusedParams, k, 112) &&
              NVFP4_OFFSET_IS(FusedParams, format, 120));

// Converts scales between layouts, for several matrices.
struct ScaleConvertParams {
  const uint8_t* from;
  uint8_t* to;
  int64_t from_batch_bytes, to_batch_bytes;
  uint32_t rows, blocks, batches;
  uint32_t from_tiles, to_tiles;  // 128x4 tiles; otherwise linear
};
static_assert(sizeof(ScaleConvertParams) == 56 &&
              NVFP4_OFFSET_IS(ScaleConvertParams, to_tiles, 48));

// Converts linear scales of the rows of groups to 128x4 tiles. Each group begins a new tile.
struct ScaleGroupsParams {
  const uint8_t* from;
  uint8_t* to;
  GroupParams groups;
  uint32_t blocks;
};
static_assert(sizeof(ScaleGroupsParams) == 88 && NVFP4_OFFSET_IS(ScaleGroupsParams, blocks, 80));

// Weights in a checkpoint's order and packed: `batches` matrices of `rows` rows, of which `packed`
// has the first.
constexpr uint32_t kPackThreads = 128;
// What a CTA takes at a time of NVFP4_PACKING_SM100_1.
constexpr uint32_t kPackedBlockRows = 128, kPackedBlockK = 256;
struct PackParams {
  uint8_t* codes;
  int64_t codes_row_bytes, codes_batch_bytes;
  uint8_t* scales;
  int64_t scales_batch_bytes;
  uint8_t* packed;
  int64_t packed_batch_bytes;
  uint32_t rows, k, batches;
  uint32_t format;            // an OperandFormatNumber
  uint32_t scales_are_tiles;  // 128x4 tiles; otherwise linear
  uint32_t swizzled;          // 1: NVFP4_PACKING_SM100_1, 0: NVFP4_PACKING_SM90_1
};
static_assert(sizeof(PackParams) == 80 && NVFP4_OFFSET_IS(PackParams, rows, 56) &&
              NVFP4_OFFSET_IS(PackParams, swizzled, 76));

}  // namespace nvfp4
