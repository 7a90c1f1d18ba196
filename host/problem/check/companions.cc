// SPDX-License-Identifier: MIT
// Fields that are given together or not at all: for each row of fields.def, whether its conditions
// hold, and what that asks of the field.
#include <cinttypes>
#include <type_traits>

#include "host/base/formats.h"
#include "host/base/operand_format.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

// Those that say which fields there are. A K of 0 and a factor of B have rules of their own.
constexpr uint32_t kConditions = fields::quantized_a | fields::has_c | fields::has_bias |
                                 fields::scaled_d | fields::host | fields::device | fields::gated |
                                 fields::silu | fields::plain_b | fields::plain_a;

// The reason why a field is not there: "c_type = NVFP4_TYPE_NONE".
struct Reason {
  const char *field, *is, *value;
};

Reason reason_of(const nvfp4_gemm_desc& g, uint32_t missing) {
  const auto value = [](const char* field, Enumeration of, int32_t is) {
    return Reason{field, "=", enumerator_name(of, is)};
  };
  if ((missing & fields::gated) != 0) return {"b2", "is", "NULL"};
  if ((missing & (fields::host | fields::device)) != 0) {
    return value("scalar_mode", Enumeration::scalars, g.scalar_mode);
  }
  if ((missing & fields::scaled_d) != 0) return value("d_type", Enumeration::type, g.d_type);
  if ((missing & fields::has_c) != 0) return value("c_type", Enumeration::type, g.c_type);
  if ((missing & fields::has_bias) != 0) return value("bias_type", Enumeration::type, g.bias_type);
  if ((missing & fields::silu) != 0) {
    return value("activation", Enumeration::activation, g.activation);
  }
  if ((missing & fields::plain_b) != 0) {
    return value("b_packing", Enumeration::packing, g.b_packing);
  }
  if ((missing & fields::quantized_a) != 0) return value("a_type", Enumeration::type, g.a_type);
  return value("a_packing", Enumeration::packing, g.a_packing);
}

// Compares bits: a caller that flushes subnormals would see them as 0.
bool is_unset(float x) { return f32_bits(x) << 1 == 0; }
bool is_unset(int64_t x) { return x == 0; }
bool is_unset(const void* x) { return x == nullptr; }

#define MUST_BE " must be %s where %s %s %s"

nvfp4_status must_be_unset(const char* name, const void* pointer, Enumeration, const Reason& r) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %p" MUST_BE, name, pointer, "NULL", r.field, r.is,
              r.value);
}
nvfp4_status must_be_unset(const char* name, float x, Enumeration, const Reason& r) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %g" MUST_BE, name, f64_from_f32(x), "0", r.field,
              r.is, r.value);
}
nvfp4_status must_be_unset(const char* name, int64_t x, Enumeration values, const Reason& r) {
  if (values == Enumeration::none) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %" PRId64 MUST_BE, name, x, "0", r.field, r.is,
                r.value);
  }
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %s" MUST_BE, name,
              enumerator_name(values, static_cast<int32_t>(x)), enumerator_name(values, 0), r.field,
              r.is, r.value);
}

#undef MUST_BE

template <typename T>
auto widened(const T& x) {
  if constexpr (std::is_same<T, float>::value) {
    return x;
  } else if constexpr (std::is_pointer<T>::value) {
    return static_cast<const void*>(x);
  } else {
    return int64_t{x};
  }
}

// Inline for each row, since a run of a plan with other addresses asks all of them.
template <Kind kKind, Enumeration kValues, uint32_t kWhen, typename T>
inline nvfp4_status check_field(const nvfp4_gemm_desc& g, const char* name, const T& field,
                                uint32_t held, bool sizes_alone) {
  constexpr uint32_t kOwn = kWhen & kConditions;
  if constexpr (kOwn != 0 && kKind != Kind::reserved_2 && kKind != Kind::reserved_4) {
    const uint32_t missing = kOwn & ~held;
    // A product that has a factor on the device does not look at it by value.
    const bool elsewhere =
        kKind == Kind::number && (missing & fields::host) != 0 && (missing & fields::gated) == 0;
    const bool unread = elsewhere || (kWhen & fields::unread) != 0;
    if (missing != 0) {
      if (unread || is_unset(widened(field))) return NVFP4_SUCCESS;
      return must_be_unset(name, widened(field), kValues, reason_of(g, missing));
    }
  }
  if constexpr (is_address(kKind) && (kWhen & fields::needed) != 0) {
    if (sizes_alone || ((kWhen & fields::with_k) != 0 && g.k == 0)) return NVFP4_SUCCESS;
    if ((kWhen & fields::has_c) != 0 && kKind == Kind::input && beta_is_zero(g)) {
      return NVFP4_SUCCESS;
    }
    return rule_not_null(name, field);
  }
  return NVFP4_SUCCESS;
}

// Tokens are packed with their scales multiplied, which is exact for UE4M3 alone.
nvfp4_status check_format_of_tokens(const nvfp4_gemm_desc& g) {
  if (!has_packed_tokens(g) || g.operand_format == NVFP4_OPERAND_FORMAT_NVFP4) {
    return NVFP4_SUCCESS;
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "operand_format = %s must be NVFP4_OPERAND_FORMAT_NVFP4 where a_packing = %s",
              enumerator_name(Enumeration::operand_format, g.operand_format),
              enumerator_name(Enumeration::packing, g.a_packing));
}

}  // namespace

bool has_packed_tokens(const nvfp4_gemm_desc& g) {
  return g.k > 0 && g.a_packing != NVFP4_PACKING_NONE;
}

uint32_t conditions_of(const nvfp4_gemm_desc& g) {
  uint32_t held = g.scalar_mode == NVFP4_SCALARS_HOST ? fields::host : fields::device;
  if (g.k > 0) held |= fields::with_k;
  if (g.a_type == NVFP4_TYPE_NONE) held |= fields::quantized_a;
  if (g.c_type != NVFP4_TYPE_NONE) held |= fields::has_c;
  if (g.bias_type != NVFP4_TYPE_NONE) held |= fields::has_bias;
  if (format_of_d(g.d_type) != nullptr) held |= fields::scaled_d;
  if (g.b_tensor_scale != nullptr || g.b_tensor_scale_columns != 0) held |= fields::b_factors;
  if (is_gated(g)) held |= fields::gated;
  if (g.activation == NVFP4_ACTIVATION_SILU) held |= fields::silu;
  if (g.b_packing == NVFP4_PACKING_NONE) held |= fields::plain_b;
  if (g.a_packing == NVFP4_PACKING_NONE) held |= fields::plain_a;
  return held;
}

bool beta_is_zero(const nvfp4_gemm_desc& g) {
  return g.scalar_mode == NVFP4_SCALARS_HOST && is_unset(g.beta);
}

bool has_c(const nvfp4_gemm_desc& g, bool sizes_alone) {
  return g.c_type != NVFP4_TYPE_NONE && !beta_is_zero(g) && (g.c != nullptr || sizes_alone);
}

nvfp4_status check_companions(const nvfp4_gemm_desc& g, bool sizes_alone) {
  uint32_t held = conditions_of(g);
  if (g.b2 == nullptr && !sizes_alone) held &= ~uint32_t{fields::gated};
#define GEMM_FIELD(kind, name, values, ...)                                                      \
  NVFP4_TRY((check_field<Kind::kind, Enumeration::values, fields::when_of(fields::gemm, #name)>( \
      g, #name, g.name, held, sizes_alone)));
#include "host/problem/fields.def"
  NVFP4_TRY(check_format_of_tokens(g));
  if (!sizes_alone && g.a_tensor_scale_rows != 0) {
    NVFP4_TRY(rule_not_null("a_tensor_scale", g.a_tensor_scale));
  }
  if (!sizes_alone && g.b_tensor_scale_columns != 0) {
    NVFP4_TRY(rule_not_null("b_tensor_scale", g.b_tensor_scale));
  }
  return check_gated(g);
}

}  // namespace nvfp4
