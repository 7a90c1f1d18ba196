// SPDX-License-Identifier: MIT
// How far a quantized matrix is from the one that it was made of, and how far it would be if it
// were quantized anew.
#pragma once

#include "tools/nvfp4/layer_values.h"

namespace nvfp4_tool {

struct ReferenceError {
  double error = 0, anew = 0;  // of the norm of the reference
};

// `reference` is F32, F16 or BF16 [rows, k] with rows of at most the matrix's n, which is padded in
// some dialects. Each column of the matrix is multiplied by its pre_quant_scale where there is one.
// Throws Refusal where the shapes do not fit.
ReferenceError compare_with(const MatrixBytes& matrix, const std::vector<double>& pre_quant_scale,
                            const TensorInfo& reference, int64_t expert, int64_t experts,
                            TensorReader& reader);

}  // namespace nvfp4_tool
