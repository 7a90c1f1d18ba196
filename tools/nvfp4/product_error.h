// SPDX-License-Identifier: MIT
// The cost of quantization: D against the product of the original matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/harness/parallel.h"
#include "tools/nvfp4/inputs.h"

namespace nvfp4_tool {

struct ProductError {
  double relative = 0;  // |D - P| / |P|, norms over the elements where both are finite
  double largest = 0;   // of |D - P|
  int64_t elements = 0;
};

// P = alpha * A * B^T of the fp32 values, summed in double.
ProductError product_error(const Sources& sources, const std::vector<uint16_t>& d,
                           const support::Progress& progress);

}  // namespace nvfp4_tool
