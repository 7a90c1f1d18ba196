// SPDX-License-Identifier: MIT
#include "host/reference/scale_layout.h"

#include "host/base/size.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

namespace {

constexpr int64_t kTileScales = kLayoutTileScales;

// A tile is 32 lines of 16 bytes: line = row % 32, and in it 4 groups (row / 32) of 4 scales. So
// one line of 16 bytes has what one lane of each of the 4 lane bands of tensor memory needs.
int64_t offset_128x4(int64_t row, int64_t ks, int64_t scales_per_row) {
  const int64_t tiles_per_row = ceil_div(scales_per_row, kTileScales);
  const int64_t tile = row / kLayoutTileRows * tiles_per_row + ks / kTileScales;
  const int64_t line = row % 32;
  const int64_t group = row % kLayoutTileRows / 32;
  return tile * kLayoutTileBytes + line * 16 + group * kTileScales + ks % kTileScales;
}

}  // namespace

int64_t scale_offset(int32_t layout, int64_t row, int64_t ks, int64_t scales_per_row) {
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return row * scales_per_row + ks;
  return offset_128x4(row, ks, scales_per_row);
}

void clear_scale_padding(uint8_t* scales, int32_t layout, int64_t rows, int64_t scales_per_row) {
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return;
  const int64_t all_rows = ceil_div(rows, kLayoutTileRows) * kLayoutTileRows;
  const int64_t all_scales = ceil_div(scales_per_row, kTileScales) * kTileScales;
  for (int64_t row = 0; row < all_rows; ++row) {
    for (int64_t ks = row < rows ? scales_per_row : 0; ks < all_scales; ++ks) {
      scales[offset_128x4(row, ks, scales_per_row)] = 0;
    }
  }
}

void convert_scales(const uint8_t* src, int32_t src_layout, uint8_t* dst, int32_t dst_layout,
                    int64_t rows, int64_t scales_per_row) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t ks = 0; ks < scales_per_row; ++ks) {
      dst[scale_offset(dst_layout, row, ks, scales_per_row)] =
          src[scale_offset(src_layout, row, ks, scales_per_row)];
    }
  }
  clear_scale_padding(dst, dst_layout, rows, scales_per_row);
}

}  // namespace nvfp4
