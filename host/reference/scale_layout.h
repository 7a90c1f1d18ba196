// SPDX-License-Identifier: MIT
// Where scales are stored, for the converters and the quantizer. The reference has an independent
// implementation.
#pragma once

#include <cstdint>

namespace nvfp4 {

// Byte offset of the scale of block `ks` (elements 16 * ks to 16 * ks + 15) of a row.
int64_t scale_offset(int32_t layout, int64_t row, int64_t ks, int64_t scales_per_row);

// Zeroes the bytes that belong to no scale: rows up to a multiple of 128, scales up to a multiple
// of 4.
void clear_scale_padding(uint8_t* scales, int32_t layout, int64_t rows, int64_t scales_per_row);

void convert_scales(const uint8_t* src, int32_t src_layout, uint8_t* dst, int32_t dst_layout,
                    int64_t rows, int64_t scales_per_row);

}  // namespace nvfp4
