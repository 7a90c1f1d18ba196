// SPDX-License-Identifier: MIT
// How the quantizer's work is divided among CTAs, and the workspace that this needs.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

constexpr int64_t element_bytes(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// grid.x and grid.y.
struct QuantizerGrid {
  uint32_t ctas, rows;
};

// CTAs that each take 32 blocks of kQuantizeWarps rows at a time. There are at most `most`, and no
// more than one set of rows has; among the counts that finish in the same time the smallest is
// used.
QuantizerGrid quantizer_grid(int64_t rows, int64_t k, int64_t most);

// Grid of the search for the largest magnitude. Each CTA leaves a number that every CTA of the next
// kernel reads, so there are few, and the same count on every device.
QuantizerGrid amax_grid(const nvfp4_quantize_desc& desc);

// Whether each row has a tensor scale of its own.
inline bool has_row_scales(int32_t tensor_scale_mode) {
  return tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX ||
         tensor_scale_mode == NVFP4_TENSOR_SCALE_ROWS ||
         tensor_scale_mode == NVFP4_TENSOR_SCALE_FROM_ROW_AMAX;
}

// Bytes of workspace that nvfp4_quantize needs.
uint64_t quantizer_workspace(const nvfp4_quantize_desc& desc);

}  // namespace nvfp4
