// SPDX-License-Identifier: MIT
#include "host/base/size.h"

#include "host/base/operand_format.h"

namespace nvfp4 {

namespace {

bool bytes_in_layout(int64_t rows, int64_t scales, int32_t layout, int64_t* bytes) {
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return multiply(rows, scales, bytes);
  if (layout != NVFP4_SCALE_LAYOUT_128X4) return false;
  int64_t tiles;
  return multiply(ceil_div(rows, kLayoutTileRows), ceil_div(scales, kLayoutTileScales), &tiles) &&
         multiply(tiles, kLayoutTileBytes, bytes);
}

}  // namespace

bool scale_bytes_for(int64_t rows, int64_t k, int32_t layout, int32_t format, int64_t* bytes) {
  const OperandFormat* const row = find_operand_format(format);
  if (row == nullptr || rows < 0 || k < 0 || k % row->block != 0) return false;
  return bytes_in_layout(rows, k / row->block, layout, bytes);
}

bool scale_bytes(int64_t rows, int64_t k, int32_t layout, int64_t* bytes) {
  return scale_bytes_for(rows, k, layout, NVFP4_OPERAND_FORMAT_NVFP4, bytes);
}

// A group of one row takes a whole tile, like a group of 128. The worst case has one row in each
// group except the last, which has all other rows.
bool grouped_scale_bytes(int64_t rows, int64_t groups, int64_t k, int32_t layout, int32_t format,
                         int64_t* bytes) {
  if (groups < 0 || (groups == 0 && rows != 0)) return false;
  if (layout != NVFP4_SCALE_LAYOUT_128X4) return scale_bytes_for(rows, k, layout, format, bytes);
  const int64_t begun = rows < groups ? rows : groups;
  int64_t tiles_rows;
  return rows >= 0 &&
         multiply(begun + (rows - begun) / kLayoutTileRows, kLayoutTileRows, &tiles_rows) &&
         scale_bytes_for(tiles_rows, k, layout, format, bytes);
}

bool extent(int64_t count, int64_t stride, int64_t span, int64_t* units) {
  int64_t last;
  return multiply(count - 1, stride, &last) && add(last, span, units);
}

bool address_range(const void* first, int64_t bytes, AddressRange* range) {
  range->begin = reinterpret_cast<uint64_t>(first);
  return !__builtin_add_overflow(range->begin, static_cast<uint64_t>(bytes), &range->end);
}

}  // namespace nvfp4
