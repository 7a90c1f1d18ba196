// SPDX-License-Identifier: MIT
// How far a quantized matrix is from its original, and how far it would be if quantized again.
#pragma once

#include "tools/nvfp4/layer_values.h"

namespace nvfp4_tool {

struct ReferenceError {
  double error = 0, anew = 0;  // of the norm of the reference
};

// `reference` is F32, F16 or BF16 [rows, k] with at most n rows, since some dialects pad the
// matrix. Each column of the matrix is multiplied by its pre_quant_scale if there is one. Throws
// Refusal if the shapes do not fit.
ReferenceError compare_with(const MatrixBytes& matrix, const std::vector<double>& pre_quant_scale,
                            const TensorInfo& reference, int64_t expert, int64_t experts,
                            TensorReader& reader);

}  // namespace nvfp4_tool
