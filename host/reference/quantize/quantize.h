// SPDX-License-Identifier: MIT
// Quantization on the host; arguments have been checked.
#pragma once

#include <cstdint>

namespace nvfp4 {

// Quantizes 16 elements to 8 bytes and a scale by an NVFP4_SCALE_RULE.
void quantize_block(const float* x, float tensor_scale, int32_t rule, uint8_t* codes,
                    uint8_t* scale);

void quantize(const float* x, int64_t x_ld, int64_t rows, int64_t k, float tensor_scale,
              uint8_t* codes, int64_t codes_ld, uint8_t* scales, int32_t scale_layout);
void dequantize(const uint8_t* codes, int64_t codes_ld, const uint8_t* scales, int32_t scale_layout,
                int64_t rows, int64_t k, float tensor_scale, float* x, int64_t x_ld);

}  // namespace nvfp4
