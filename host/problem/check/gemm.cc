// SPDX-License-Identifier: MIT
// Rules of nvfp4_gemm_desc that do not depend on a variant, in the header's order.
#include <cinttypes>
#include <cstddef>

#include "host/base/operand_format.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxReferenceK = 1 << 20;  // keeps the reference's sums within 63 bits

// ---- m, n, k, l --------------------------------------------------------------------------------

// An unknown format is refused after the sizes.
nvfp4_status check_k(const nvfp4_gemm_desc& g, Caller caller) {
  const OperandFormat* const format = find_operand_format(g.operand_format);
  const int64_t block = format == nullptr ? kScaleBlock : format->block;
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", g.k, block,
                          block == kScaleBlock ? "" : ", the elements that share a scale"));
  return caller == Caller::reference ? rule_range("k", g.k, kMaxReferenceK) : NVFP4_SUCCESS;
}

nvfp4_status check_sizes(const nvfp4_gemm_desc& g, Caller caller) {
  NVFP4_TRY(rule_range("m", g.m, kMaxSize));
  NVFP4_TRY(rule_range("n", g.n, kMaxSize));
  NVFP4_TRY(rule_range("k", g.k, kMaxSize));
  NVFP4_TRY(rule_range("l", g.l, kMaxSize));
  return check_k(g, caller);
}

}  // namespace

nvfp4_status check_kind(const nvfp4_gemm_desc* desc, Caller caller, nvfp4_gemm_desc* known) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(read_struct(*desc, offsetof(nvfp4_gemm_desc, d_amax), "nvfp4_gemm_desc", known));
  NVFP4_TRY(check_sizes(*known, caller));
  NVFP4_TRY(check_enums(*known));
  return check_switches(*known);
}

bool asks_about_sizes(const nvfp4_gemm_desc& desc, Caller caller) {
  return caller == Caller::question && has_no_address(desc);
}

nvfp4_status check_operands(const nvfp4_gemm_desc& g, Caller caller, bool sizes_alone) {
  NVFP4_TRY(check_companions(g, sizes_alone));
  if (!sizes_alone) NVFP4_TRY(check_addresses(g, caller));
  NVFP4_TRY(check_leading_dimensions(g, sizes_alone));
  NVFP4_TRY(check_strides(g, sizes_alone));
  NVFP4_TRY(check_scaled_d(g, g.l));
  return sizes_alone ? check_extents(g, nullptr) : check_overlap(g, nullptr, 0);
}

nvfp4_status check_addresses_struct(const nvfp4_gemm_addresses& addresses,
                                    const nvfp4_gemm_desc& plan, bool grouped, bool gated,
                                    nvfp4_gemm_addresses* known) {
  NVFP4_TRY(read_struct(addresses, offsetof(nvfp4_gemm_addresses, d_amax), "nvfp4_gemm_addresses",
                        known));
  return check_absent_addresses(*known, plan, grouped, gated);
}

nvfp4_status check_new_addresses(const nvfp4_gemm_desc& desc, const GroupArrays* groups,
                                 uint64_t workspace_bytes) {
  NVFP4_TRY(check_companions(desc, false));
  NVFP4_TRY(check_addresses(desc, Caller::run));
  NVFP4_TRY(check_scaled_d(desc, groups != nullptr ? 1 : desc.l));
  if (groups != nullptr) NVFP4_TRY(check_group_arrays(desc, *groups));
  return check_overlap(desc, groups, workspace_bytes);
}

}  // namespace nvfp4
