// SPDX-License-Identifier: MIT
// Fields of nvfp4_gemm_desc that hold an enumerator: which values are legal, and which are
// supported.
#include "host/base/operand_format.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

using Desc = nvfp4_gemm_desc;

struct EnumField {
  const char* name;
  int32_t Desc::*field;
  Enumeration enumeration;
  EnumeratorSet legal, run, reference;  // supported for each Caller
};

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
constexpr EnumeratorSet kScaledTypes = scaled_types();
constexpr EnumeratorSet kFormats = every(Enumeration::operand_format);
constexpr EnumeratorSet kScaleRules = every(Enumeration::scale_rule);
constexpr EnumeratorSet kNoLayout = only(NVFP4_SCALE_LAYOUT_UNSET);
constexpr EnumeratorSet kLayouts = any_of(NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR);
constexpr EnumeratorSet kScalars = every(Enumeration::scalars);
constexpr EnumeratorSet kActivations = every(Enumeration::activation);
constexpr EnumeratorSet kPdl = every(Enumeration::pdl);
constexpr EnumeratorSet kOrders = every(Enumeration::cd_order);
constexpr EnumeratorSet kAxes = every(Enumeration::bias_axis);
constexpr EnumeratorSet kFirst = only(0);  // value of a field that was never set
constexpr EnumeratorSet kATypes = any_of(NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16);

#define FIELD(name) #name, &Desc::name
constexpr EnumField kEnumFields[] = {
    {FIELD(a_scale_layout), Enumeration::scale_layout, kLayouts, kLayouts, kLayouts},
    {FIELD(b_scale_layout), Enumeration::scale_layout, kLayouts, kLayouts, kLayouts},
    {FIELD(d_scale_layout), Enumeration::scale_layout, kNoLayout | kLayouts, kNoLayout | kLayouts,
     kNoLayout | kLayouts},
    {FIELD(c_type), Enumeration::type, kNoType | kFloats, kNoType | kFloats, kNoType | kFloats},
    {FIELD(d_type), Enumeration::type, kFloats | kScaledTypes, kFloats | kScaledTypes,
     kFloats | kScaledTypes},
    {FIELD(bias_type), Enumeration::type, kNoType | kFloats, kNoType | kFloats, kNoType | kFloats},
    {FIELD(scalar_mode), Enumeration::scalars, kScalars, kScalars, kScalars},
    {FIELD(activation), Enumeration::activation, kActivations, kActivations, kActivations},
    {FIELD(pdl), Enumeration::pdl, kPdl, kPdl, kPdl},
    {FIELD(operand_format), Enumeration::operand_format, kFormats, kFormats, kFormats},
    {FIELD(a_type), Enumeration::type, kATypes, kATypes, kATypes},
    {FIELD(cd_order), Enumeration::cd_order, kOrders, kOrders, kOrders},
    {FIELD(bias_axis), Enumeration::bias_axis, kAxes, kAxes, kAxes},
    {FIELD(d_scale_rule), Enumeration::scale_rule, kScaleRules, kScaleRules, kScaleRules},
};
#undef FIELD

}  // namespace

nvfp4_status check_enums(const nvfp4_gemm_desc& g, Caller caller) {
  for (const EnumField& row : kEnumFields) {
    const int32_t value = g.*row.field;
    // An A that is not quantized has no scales.
    const bool no_scales = row.field == &Desc::a_scale_layout && g.a_type != NVFP4_TYPE_NONE;
    if (no_scales && value == NVFP4_SCALE_LAYOUT_UNSET) continue;
    NVFP4_TRY(rule_enumerator(row.name, value, row.enumeration, row.legal));
    if (!holds(caller == Caller::reference ? row.reference : row.run, value)) {
      return enumerator_not_there(row.name, value, row.enumeration);
    }
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
