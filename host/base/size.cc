// SPDX-License-Identifier: MIT
#include "host/base/size.h"

#include "nvfp4_gemm.h"

namespace nvfp4 {

bool scale_bytes(int64_t rows, int64_t k, int32_t layout, int64_t* bytes) {
  if (rows < 0 || k < 0 || k % kScaleBlock != 0) return false;
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return multiply(rows, k / kScaleBlock, bytes);
  if (layout != NVFP4_SCALE_LAYOUT_128X4) return false;
  int64_t tiles;
  return multiply(ceil_div(rows, kLayoutTileRows), ceil_div(k, kLayoutTileK), &tiles) &&
         multiply(tiles, kLayoutTileBytes, bytes);
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
