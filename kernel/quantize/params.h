// SPDX-License-Identifier: MIT
// The arguments of the kernels that quantize, dequantize and rearrange scales. Plain C++, no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nvfp4 {

constexpr uint32_t kQuantizeThreads = 128;     // a block of 16 elements each
constexpr uint32_t kAmaxThreads = 256;         // of a CTA that looks for the largest magnitude
constexpr uint32_t kMostAmaxCtas = 1024;       // each leaves one fp32 in the workspace
constexpr float kLargestProduct = 448 * 6.0f;  // the largest scale times the largest element

// Where the tensor scale comes from.
enum TensorScaleSource : uint32_t {
  kTensorScaleValue,    // tensor_scale
  kTensorScalePointer,  // *tensor_scale_device
  kTensorScaleAmax,     // partial maxima; it is stored to *tensor_scale_device
};

// A matrix [rows][16 * blocks], row-major, and its NVFP4 form.
struct QuantizeParams {
  void* x;
  int64_t x_ld;  // elements
  uint8_t* codes;
  int64_t codes_row_bytes;
  uint8_t* scales;
  float* tensor_scale_device;
  float* partial_amax;  // amax_ctas of them
  uint32_t rows, blocks;
  uint32_t amax_ctas;
  float tensor_scale;
  uint32_t tensor_scale_source;
  uint32_t scales_are_tiles;  // 128x4 tiles, else linear
  uint32_t vectors;           // x: rows start at multiples of 16 bytes; codes: of 8
  uint32_t reserved;
};
static_assert(sizeof(QuantizeParams) == 88 && offsetof(QuantizeParams, rows) == 56);

// Scales of one layout to the other.
struct ScaleConvertParams {
  const uint8_t* from;
  uint8_t* to;
  uint32_t rows, blocks;
  uint32_t from_tiles, to_tiles;  // 128x4 tiles, else linear
};

}  // namespace nvfp4
