// SPDX-License-Identifier: MIT
// Fields of gated products, D = act(x) * y: those that b2 requires, and those that only a product
// with b2 may set.
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

nvfp4_status no_pointer(const char* name, const void* pointer) {
  if (pointer == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL where b2 is NULL", name, pointer);
}

nvfp4_status check_without_b2(const nvfp4_gemm_desc& g) {
  NVFP4_TRY(no_pointer("b2_scales", g.b2_scales));
  NVFP4_TRY(no_pointer("b2_tensor_scale", g.b2_tensor_scale));
  NVFP4_TRY(no_pointer("bias2", g.bias2));
  NVFP4_TRY(no_pointer("alpha2_device", g.alpha2_device));
  constexpr const char* kRule = "must be 0 where b2 is NULL";
  if (!is_zero(g.gate_limit)) return refuse("gate_limit", g.gate_limit, kRule);
  if (!is_zero(g.gate_alpha)) return refuse("gate_alpha", g.gate_alpha, kRule);
  return is_zero(g.gate_beta) ? NVFP4_SUCCESS : refuse("gate_beta", g.gate_beta, kRule);
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

nvfp4_status check_gate(const nvfp4_gemm_desc& g) {
  if (g.activation == NVFP4_ACTIVATION_SILU) return check_silu(g);
  constexpr const char* kRule = "must be 0: SiLU alone takes it";
  if (!is_zero(g.gate_limit)) return refuse("gate_limit", g.gate_limit, kRule);
  if (!is_zero(g.gate_alpha)) return refuse("gate_alpha", g.gate_alpha, kRule);
  return is_zero(g.gate_beta) ? NVFP4_SUCCESS : refuse("gate_beta", g.gate_beta, kRule);
}

}  // namespace

bool is_gated(const nvfp4_gemm_desc& g) { return g.b2 != nullptr || !is_zero(g.alpha2); }

nvfp4_status check_gated(const nvfp4_gemm_desc& g, bool sizes_alone) {
  if (!is_gated(g)) return check_without_b2(g);
  if (g.b2 == nullptr && !sizes_alone) {
    return refuse("alpha2", g.alpha2, "must be 0 where b2 is NULL");
  }
  if (g.c_type != NVFP4_TYPE_NONE) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "c_type = %s must be NVFP4_TYPE_NONE where there is b2",
                enumerator_name(Enumeration::type, g.c_type));
  }
  if (g.scalar_mode == NVFP4_SCALARS_HOST) {
    NVFP4_TRY(rule_without("alpha2_device", g.alpha2_device, "scalar_mode", Enumeration::scalars,
                           g.scalar_mode));
  } else {
    NVFP4_TRY(rule_with("alpha2_device", g.alpha2_device, sizes_alone));
  }
  if (g.bias_type != NVFP4_TYPE_NONE) {
    NVFP4_TRY(rule_with("bias2", g.bias2, sizes_alone));
  } else {
    NVFP4_TRY(rule_without("bias2", g.bias2, "bias_type", Enumeration::type, g.bias_type));
  }
  return check_gate(g);
}

}  // namespace nvfp4
