// SPDX-License-Identifier: MIT
// Values of the fields of gated products, D = act(x) * y. Without b2, and without SiLU, they are 0.
#include "host/base/formats.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

// Compares bits: a caller that flushes subnormals would see them as 0.
bool is_zero(float x) { return f32_bits(x) << 1 == 0; }
bool is_finite(float x) { return (f32_bits(x) & 0x7FFFFFFF) < kF32.overflow_code; }
bool is_positive(float x) { return f32_bits(x) - 1 < kF32.overflow_code - 1; }  // and finite

nvfp4_status refuse(const char* name, float value, const char* rule) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %g %s", name, f64_from_f32(value), rule);
}

// With these limits of gate_alpha, exp(-gate_alpha * x) stays in the range for which the formula
// was proved (docs/numerics.md, "Activations").
nvfp4_status check_silu(const nvfp4_gemm_desc& g) {
  if (!is_zero(g.gate_limit) && !is_positive(g.gate_limit)) {
    return refuse("gate_limit", g.gate_limit, "is neither 0 nor finite and above it");
  }
  const bool in_range = g.gate_alpha >= 0.015625f && g.gate_alpha <= 64;
  if (!is_zero(g.gate_alpha) && !in_range) {
    return refuse("gate_alpha", g.gate_alpha, "is neither 0 nor from 1/64 to 64");
  }
  return is_finite(g.gate_beta) ? NVFP4_SUCCESS : refuse("gate_beta", g.gate_beta, "is not finite");
}

}  // namespace

bool is_gated(const nvfp4_gemm_desc& g) { return g.b2 != nullptr || !is_zero(g.alpha2); }

nvfp4_status check_gated(const nvfp4_gemm_desc& g) {
  if (is_gated(g) && g.c_type != NVFP4_TYPE_NONE) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "c_type = %s must be NVFP4_TYPE_NONE where there is b2",
                enumerator_name(Enumeration::type, g.c_type));
  }
  return check_silu(g);
}

}  // namespace nvfp4
