// SPDX-License-Identifier: MIT
// Features that are declared but not in this version: their fields must be NULL, 0 or off, or they
// are refused by name.
#include <cinttypes>
#include <iterator>

#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kScaleColumnsMultiple = 64;

#define NVFP4_VERSION_NUMBERS NVFP4_VERSION_MAJOR, NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH

nvfp4_status absent_pointer(const char* name, const void* value) {
  if (value == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_NOT_SUPPORTED, "%s = %p must be NULL: not there in version %d.%d.%d",
              name, value, NVFP4_VERSION_NUMBERS);
}

// Refuses an address that belongs to b2 in a run of a plan without b2.
nvfp4_status not_gated(const char* name, const void* value) {
  if (value == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL: the plan is of no gated product",
              name, value);
}

nvfp4_status not_grouped(const char* name, const void* pointer) {
  if (pointer == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL: the plan is of no grouped product",
              name, pointer);
}

// The kernel of a plan either computes amax or does not, so a run cannot change that.
nvfp4_status not_in_plan(const char* name, const void* pointer) {
  if (pointer == nullptr) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL: the plan was made without one",
              name, pointer);
}

#define ABSENT(of, field) NVFP4_TRY(absent_pointer(#field, (of).field))

}  // namespace

nvfp4_status check_switches(const nvfp4_gemm_desc& g) {
  NVFP4_TRY(rule_switch("batch_invariant", g.batch_invariant));
  NVFP4_TRY(rule_switch("a_tensor_scale_rows", g.a_tensor_scale_rows));
  NVFP4_TRY(rule_reserved(g.reserved));
  NVFP4_TRY(rule_zeros("reserved2", g.reserved2, std::size(g.reserved2)));
  NVFP4_TRY(rule_range("b_tensor_scale_columns", g.b_tensor_scale_columns, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "b_tensor_scale_columns",
                       g.b_tensor_scale_columns, kScaleColumnsMultiple, "");
}

nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x, bool grouped, bool gated) {
  if (!gated) {
    NVFP4_TRY(not_gated("b2", x.b2));
    NVFP4_TRY(not_gated("b2_scales", x.b2_scales));
    NVFP4_TRY(not_gated("b2_tensor_scale", x.b2_tensor_scale));
    NVFP4_TRY(not_gated("bias2", x.bias2));
    NVFP4_TRY(not_gated("alpha2_device", x.alpha2_device));
    NVFP4_TRY(not_gated("group_alpha2", x.group_alpha2));
  }
  if (!grouped) {
    NVFP4_TRY(not_grouped("rows", x.rows));
    NVFP4_TRY(not_grouped("scale_rows", x.scale_rows));
    NVFP4_TRY(not_grouped("group_alpha", x.group_alpha));
    NVFP4_TRY(not_grouped("group_alpha2", x.group_alpha2));
  }
  ABSENT(x, group_d_tensor_scale);
  return NVFP4_SUCCESS;
}

nvfp4_status check_amax_addresses(const nvfp4_gemm_desc& plan, const nvfp4_gemm_addresses& x) {
  if (plan.d_amax == nullptr) NVFP4_TRY(not_in_plan("d_amax", x.d_amax));
  return plan.d_row_amax == nullptr ? not_in_plan("d_row_amax", x.d_row_amax) : NVFP4_SUCCESS;
}

}  // namespace nvfp4
