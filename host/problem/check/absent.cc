// SPDX-License-Identifier: MIT
// Switches and reserved words of a descriptor; the addresses that a plan is run with.
#include <cinttypes>
#include <iterator>
#include <type_traits>

#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kScaleColumnsMultiple = 64;

// Refuses an address that the plan of a run has no use for.
nvfp4_status not_in_plan(const char* name, const void* pointer, const char* why) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p must be NULL: the plan %s", name, pointer, why);
}

// `of_plan` is the plan's own address. Its kernel either computes a maximum or does not, so a run
// cannot change that. Inline, since most addresses have no condition.
template <uint32_t kWhen>
inline nvfp4_status check_absent(const char* name, const void* given, const void* of_plan,
                                 bool grouped, bool gated) {
  if (kWhen == fields::always || given == nullptr) return NVFP4_SUCCESS;
  if ((kWhen & fields::gated) != 0 && !gated) {
    return not_in_plan(name, given, "is of no gated product");
  }
  if ((kWhen & fields::grouped) != 0 && !grouped) {
    return not_in_plan(name, given, "is of no grouped product");
  }
  if ((kWhen & fields::in_plan) != 0 && of_plan == nullptr) {
    return not_in_plan(name, given, "was made without one");
  }
  return NVFP4_SUCCESS;
}

// The address of the same name in the desc, NULL where it has none.
template <size_t kOffset>
inline const void* same_in(const nvfp4_gemm_desc& g) {
  return kOffset == fields::kNowhere ? nullptr : fields::value<const void*>(&g, kOffset);
}

template <size_t kOffset>
inline void replace(const void* given, nvfp4_gemm_desc* g) {
  if (kOffset != fields::kNowhere && given != nullptr) fields::set(g, kOffset, given);
}

template <Kind kKind, typename T>
nvfp4_status check_switch(const char* name, const T& value) {
  if constexpr (kKind == Kind::flag) return rule_switch(name, value);
  if constexpr (std::is_array<T>::value) return rule_zeros(name, value, std::size(value));
  return NVFP4_SUCCESS;
}

}  // namespace

nvfp4_status check_switches(const nvfp4_gemm_desc& g) {
#define GEMM_FIELD(kind, name, ...) NVFP4_TRY(check_switch<Kind::kind>(#name, g.name));
#include "host/problem/fields.def"
  NVFP4_TRY(rule_range("b_tensor_scale_columns", g.b_tensor_scale_columns, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "b_tensor_scale_columns",
                       g.b_tensor_scale_columns, kScaleColumnsMultiple, "");
}

nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x, const nvfp4_gemm_desc& plan,
                                    bool grouped, bool gated) {
#define ADDRESS_FIELD(kind, name, values, when)                                                \
  if constexpr (is_address(Kind::kind)) {                                                      \
    NVFP4_TRY(check_absent<fields::when_of(fields::addresses, #name)>(                         \
        #name, fields::address(x.name), same_in<fields::offset_of(fields::gemm, #name)>(plan), \
        grouped, gated));                                                                      \
  }
#include "host/problem/fields.def"
  return NVFP4_SUCCESS;
}

void replace_addresses(const nvfp4_gemm_addresses& x, nvfp4_gemm_desc* g) {
#define ADDRESS_FIELD(kind, name, ...)  \
  if constexpr (is_address(Kind::kind)) \
    replace<fields::offset_of(fields::gemm, #name)>(fields::address(x.name), g);
#include "host/problem/fields.def"
  if (x.workspace != nullptr) g->workspace_bytes = x.workspace_bytes;
}

}  // namespace nvfp4
