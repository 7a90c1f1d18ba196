// SPDX-License-Identifier: MIT
// How a quantizer's work is divided among CTAs, and the workspace that follows from it.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

constexpr int64_t element_bytes(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// grid.x and grid.y.
struct QuantizerGrid {
  uint32_t ctas, rows;
};

// CTAs that take 32 blocks of kQuantizeWarps rows at a time: at most `most`, or as many as one set
// of rows has, and of those as few as are done at the same time.
QuantizerGrid quantizer_grid(int64_t rows, int64_t k, int64_t most);

// The search for the largest magnitude. Each CTA leaves a number, which every CTA of the next
// kernel reads again, so there are few, and as many on every device.
QuantizerGrid amax_grid(const nvfp4_quantize_desc& desc);

// Does each row have a tensor scale of its own?
inline bool has_row_scales(int32_t tensor_scale_mode) {
  return tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX ||
         tensor_scale_mode == NVFP4_TENSOR_SCALE_ROWS ||
         tensor_scale_mode == NVFP4_TENSOR_SCALE_FROM_ROW_AMAX;
}

// Bytes of workspace that nvfp4_quantize needs.
uint64_t quantizer_workspace(const nvfp4_quantize_desc& desc);

}  // namespace nvfp4
