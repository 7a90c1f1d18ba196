// SPDX-License-Identifier: MIT
// What `nvfp4 quantize` writes, read back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nvfp4_tool {

struct QuantizedMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<uint8_t> codes;   // [rows, columns / 2]
  std::vector<uint8_t> scales;  // linear, [rows, columns / 16]
  float tensor_scale = 1;
};

// PREFIX.codes.npy, .scales.npy in either layout, .tensor_scale.npy. Throws UsageError with the
// file and what is wrong with it, or does not fit the other files.
QuantizedMatrix load_quantized(const std::string& prefix);

}  // namespace nvfp4_tool
