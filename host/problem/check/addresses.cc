// SPDX-License-Identifier: MIT
// Addresses of nvfp4_gemm_desc: given and aligned.
#include "host/base/operand_format.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

int64_t bytes_of_type(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

bool has_no_address(const nvfp4_gemm_desc& g) {
  const void* const addresses[] = {g.a,
                                   g.a_scales,
                                   g.a_tensor_scale,
                                   g.b,
                                   g.b_scales,
                                   g.c,
                                   g.b_tensor_scale,
                                   g.d,
                                   g.d_scales,
                                   g.d_tensor_scale,
                                   g.d_amax,
                                   g.d_row_amax,
                                   g.bias,
                                   g.alpha_device,
                                   g.beta_device,
                                   g.workspace,
                                   g.b2,
                                   g.b2_scales,
                                   g.b2_tensor_scale,
                                   g.bias2,
                                   g.alpha2_device};
  for (const void* address : addresses) {
    if (address != nullptr) return false;
  }
  return true;
}

// With K = 0 the operands have no elements and are not checked.
nvfp4_status check_addresses(const nvfp4_gemm_desc& g, Caller caller) {
  enum class Need { never, always, if_k };
  const bool quantized = g.a_type == NVFP4_TYPE_NONE;
  const uint64_t a_bytes = quantized ? 1 : static_cast<uint64_t>(bytes_of_type(g.a_type));
  const uint64_t c_bytes = static_cast<uint64_t>(bytes_of_type(g.c_type));
  const bool d_codes = format_of_d(g.d_type) != nullptr;
  const uint64_t d_bytes = d_codes ? 1 : static_cast<uint64_t>(bytes_of_type(g.d_type));
  const struct {
    const char* name;
    const void* address;
    Need need;
    uint64_t host_alignment;  // the alignment that the CPU needs for the type
  } rows[] = {
      {"a", g.a, Need::if_k, a_bytes},
      {"a_scales", g.a_scales, quantized ? Need::if_k : Need::never, 1},
      {"b", g.b, Need::if_k, 1},
      {"b_scales", g.b_scales, Need::if_k, 1},
      {"b2", g.b2, Need::never, 1},
      {"b2_scales", g.b2_scales, is_gated(g) ? Need::if_k : Need::never, 1},
      {"c", g.c, Need::never, c_bytes},
      {"d", g.d, Need::always, d_bytes},
      {"d_scales", g.d_scales, d_codes ? Need::always : Need::never, 1},
      {"workspace", g.workspace, Need::never, 1},
  };
  for (const auto& row : rows) {
    if (row.need == Need::if_k && g.k == 0) continue;
    if (row.need != Need::never) NVFP4_TRY(rule_not_null(row.name, row.address));
    const uint64_t bytes = caller == Caller::reference ? row.host_alignment : kAddressAlignment;
    NVFP4_TRY(rule_aligned(row.name, row.address, bytes));
  }
  NVFP4_TRY(rule_aligned("a_tensor_scale", g.a_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("b_tensor_scale", g.b_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("b2_tensor_scale", g.b2_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("d_tensor_scale", g.d_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("d_amax", g.d_amax, alignof(float)));
  NVFP4_TRY(rule_aligned("d_row_amax", g.d_row_amax, alignof(float)));
  NVFP4_TRY(rule_aligned("alpha_device", g.alpha_device, alignof(float)));
  NVFP4_TRY(rule_aligned("alpha2_device", g.alpha2_device, alignof(float)));
  NVFP4_TRY(rule_aligned("beta_device", g.beta_device, alignof(float)));
  const auto bias_bytes = static_cast<uint64_t>(bytes_of_type(g.bias_type));
  NVFP4_TRY(rule_aligned("bias", g.bias, bias_bytes));
  return rule_aligned("bias2", g.bias2, bias_bytes);
}

}  // namespace nvfp4
