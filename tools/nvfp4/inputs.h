// SPDX-License-Identifier: MIT
// The operands of a command: made from a seed, or a user's matrices quantized.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/harness/problem.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/npy.h"

namespace nvfp4_tool {

// What `nvfp4 quantize` writes, read back.
struct QuantizedMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<uint8_t> codes;   // [rows, columns / 2]
  std::vector<uint8_t> scales;  // linear, [rows, columns / 16]
  float tensor_scale = 1;
  std::optional<Array<uint8_t>> packed;  // PREFIX.packed.npy, where there is one
};

// PREFIX.codes.npy, .scales.npy in either layout, .tensor_scale.npy and .packed.npy. Throws
// UsageError with the file and what is wrong with it, or does not fit the other files.
QuantizedMatrix load_quantized(const std::string& prefix);

// [blocks of rows, units of K, bytes of a unit] of packed weights.
std::vector<uint64_t> packed_shape(int64_t rows, int64_t columns, int32_t packing);

// The packing of the operand's weights by the PREFIX.packed.npy of `q`: NVFP4_PACKING_NONE where
// there is none. Throws UsageError where the file holds other weights.
int32_t packing_of(const QuantizedMatrix& q, const support::Operand& weights,
                   const std::string& prefix);

// A user's matrices. Those that come quantized have no values.
struct Sources {
  Matrix a, b;
  float alpha = 1.0f;  // as given, without tensor scales
  std::optional<QuantizedMatrix> quantized_a, quantized_b;

  // Both are known as they were before, for the error against the product without quantization.
  bool original() const { return !quantized_a && !quantized_b; }
};

// The problem without data. Refuses a layout that memory cannot have.
support::Gaps gaps_of(const RunOptions& options);
// What the options say of a product but its sizes: the gaps of C and D, and alpha as given or 1. A
// variant is the options' own text.
support::Fields fields_of(const RunOptions& options);

// The largest finite magnitude / 2688, so that it becomes 6 * 448; 1 for a matrix of zeros. Throws
// UsageError where that is 0 in fp32.
float tensor_scale_of(const Matrix& x, const std::string& name);

// Whether A and B come from files.
bool has_files(const RunOptions& options);
Sources load_sources(const RunOptions& options);
support::Problem problem_from(const Sources& sources, const RunOptions& options);
support::Problem problem_from(const RunOptions& options);  // drawn

}  // namespace nvfp4_tool
