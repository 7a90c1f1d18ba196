// SPDX-License-Identifier: MIT
// Fields of nvfp4_gemm_desc that hold an enumerator, and which values each takes.
#include <cstddef>

#include "host/base/operand_format.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

template <typename... Values>
constexpr EnumeratorSet any_of(Values... values) {
  return (only(values) | ...);
}

constexpr EnumeratorSet kNoType = only(NVFP4_TYPE_NONE);
constexpr EnumeratorSet kFloats = any_of(NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32);
constexpr EnumeratorSet scaled_types() {
  EnumeratorSet types = 0;
  for (const OperandFormat& row : kOperandFormats) types |= only(row.d_type);
  return types;
}

// All values of the enumeration, except for fields that take some of them.
constexpr EnumeratorSet legal_values(size_t offset, Enumeration values) {
  switch (offset) {
    case offsetof(nvfp4_gemm_desc, a_scale_layout):
    case offsetof(nvfp4_gemm_desc, b_scale_layout):
      return every(values) & ~only(NVFP4_SCALE_LAYOUT_UNSET);
    case offsetof(nvfp4_gemm_desc, a_type):
      return kNoType | any_of(NVFP4_TYPE_F16, NVFP4_TYPE_BF16);
    case offsetof(nvfp4_gemm_desc, a_packing):
      return any_of(NVFP4_PACKING_NONE, NVFP4_PACKING_SM90_TOKENS_1);
    case offsetof(nvfp4_gemm_desc, b_packing):
      return every(values) & ~only(NVFP4_PACKING_SM90_TOKENS_1);
    case offsetof(nvfp4_gemm_desc, bias_type):
    case offsetof(nvfp4_gemm_desc, c_type): return kNoType | kFloats;
    case offsetof(nvfp4_gemm_desc, d_type): return kFloats | scaled_types();
    case offsetof(nvfp4_gemm_desc, d_scale_rule):
      return every(values) & ~only(NVFP4_SCALE_RULE_4OVER6);
    default: return every(values);
  }
}

template <Enumeration kValues, size_t kOffset>
inline nvfp4_status check_enum(const nvfp4_gemm_desc& g, const char* name) {
  if constexpr (kValues != Enumeration::none) {
    const auto value = fields::value<int32_t>(&g, kOffset);
    // An A that is not quantized has no scales, and a packed A or B none of its own.
    const bool no_scales = kOffset == offsetof(nvfp4_gemm_desc, a_scale_layout)
                               ? g.a_type != NVFP4_TYPE_NONE || g.a_packing != NVFP4_PACKING_NONE
                               : kOffset == offsetof(nvfp4_gemm_desc, b_scale_layout) &&
                                     g.b_packing != NVFP4_PACKING_NONE;
    if (!no_scales || value != NVFP4_SCALE_LAYOUT_UNSET)
      return rule_enumerator(name, value, kValues, legal_values(kOffset, kValues));
  }
  return NVFP4_SUCCESS;
}

}  // namespace

nvfp4_status check_enums(const nvfp4_gemm_desc& g) {
#define GEMM_FIELD(kind, name, values, ...) \
  NVFP4_TRY((check_enum<Enumeration::values, offsetof(nvfp4_gemm_desc, name)>(g, #name)));
#include "host/problem/fields.def"
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
