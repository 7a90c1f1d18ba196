// SPDX-License-Identifier: MIT
#include "host/problem/quantizer.h"

#include <algorithm>

#include "host/base/size.h"
#include "kernel/quantize/params.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMostGridRows = 65535;

}  // namespace

QuantizerGrid quantizer_grid(int64_t rows, int64_t k, int64_t most) {
  const int64_t sets = ceil_div(rows, int64_t{kQuantizeWarps});
  const int64_t ctas = ceil_div(k / kScaleBlock, int64_t{32});
  const int64_t at_once = std::clamp(most / ctas, int64_t{1}, std::min(sets, kMostGridRows));
  return {static_cast<uint32_t>(ctas),
          static_cast<uint32_t>(ceil_div(sets, ceil_div(sets, at_once)))};
}

QuantizerGrid amax_grid(const nvfp4_quantize_desc& desc) {
  const QuantizerGrid grid = quantizer_grid(desc.rows, desc.k, kMostAmaxCtas);
  return {std::min(grid.ctas, kMostAmaxCtas), grid.rows};
}

uint64_t quantizer_workspace(const nvfp4_quantize_desc& desc) {
  if (desc.tensor_scale_mode != NVFP4_TENSOR_SCALE_AMAX) return 0;
  const QuantizerGrid grid = amax_grid(desc);
  return sizeof(float) * grid.ctas * grid.rows;
}

}  // namespace nvfp4
