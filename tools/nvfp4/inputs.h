// SPDX-License-Identifier: MIT
// The operands of a command: made from a seed, or a user's matrices quantized.
#pragma once

#include <optional>
#include <string>

#include "tools/harness/general_gemm.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/npy.h"

namespace nvfp4_tool {

// A user's original matrices, for the error against the product without quantization.
struct Sources {
  Matrix a, b;
  float alpha = 1.0f;  // as given, without tensor scales
};

// The problem without data. Refuses a layout that memory cannot have.
support::Gaps gaps_of(const RunOptions& options);
// The epilogue with its gaps, and alpha as given or 1.
support::EpilogueFields fields_of(const RunOptions& options);

// The largest finite magnitude / 2688, so that it becomes 6 * 448; 1 for a matrix of zeros. Throws
// UsageError where that is 0 in fp32.
float tensor_scale_of(const Matrix& x, const std::string& name);

Sources load_sources(const RunOptions& options);
support::Problem problem_from(const Sources& sources, const RunOptions& options);
support::Problem problem_from(const RunOptions& options);

}  // namespace nvfp4_tool
