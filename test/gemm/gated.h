// SPDX-License-Identifier: MIT
// What tests of gated products share.
#pragma once

#include "tools/harness/fields.h"

namespace gemm_test {

// A SwiGLU with everything that the two products have of their own.
inline support::Fields swiglu(int32_t d_type) {
  support::Fields f;
  f.b2 = support::kGiven, f.d_type = d_type, f.activation = NVFP4_ACTIVATION_SILU;
  f.alpha = 0.02f, f.alpha2 = -0.03f;
  f.bias_type = NVFP4_TYPE_BF16;
  f.gate_limit = 7, f.gate_alpha = 1.702f, f.gate_beta = 1;
  return f;
}

}  // namespace gemm_test
