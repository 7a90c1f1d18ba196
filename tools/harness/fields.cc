// SPDX-License-Identifier: MIT
#include "tools/harness/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace support {

namespace rows = nvfp4::fields;
using nvfp4::Kind;

namespace {

constexpr int64_t kColumns = 64;  // that share a factor at least

// Whether the descriptor is one of those that a condition asks for.
bool holds(const nvfp4_gemm_desc& g, uint32_t when) {
  const auto asks = [when](uint32_t condition) { return (when & condition) != 0; };
  const bool device = g.scalar_mode == NVFP4_SCALARS_DEVICE;
  return !(asks(rows::with_k) && g.k == 0) &&
         !(asks(rows::quantized_a) && g.a_type != NVFP4_TYPE_NONE) &&
         !(asks(rows::has_c) && g.c_type == NVFP4_TYPE_NONE) &&
         !(asks(rows::has_bias) && g.bias_type == NVFP4_TYPE_NONE) &&
         !(asks(rows::scaled_d) && scale_block_of_d(g.d_type) == 0) &&
         !(asks(rows::host) && device) && !(asks(rows::device) && !device) &&
         !(asks(rows::b_factors) && g.b_tensor_scale == nullptr) &&
         !(asks(rows::gated) && g.b2 == nullptr) &&
         !(asks(rows::plain_b) && g.b_packing != NVFP4_PACKING_NONE) &&
         !(asks(rows::plain_a) && g.a_packing != NVFP4_PACKING_NONE) &&
         !(asks(rows::silu) && g.activation != NVFP4_ACTIVATION_SILU) && !asks(rows::never);
}

bool is_named(const GemmField& field, const char* name) {
  return std::strcmp(field.name, name) == 0;
}

// Whether a test asks for the array itself: no number tells of it.
bool is_asked_for(const GemmField& field) {
  return is_address(field.kind) && field.drawn.as == nvfp4::Drawn::As::coin;
}

// What operands and launch are: products that differ in these alone have the same epilogue.
bool is_of_epilogue(const GemmField& field) {
  for (const char* other : {"alpha", "a_scale_layout", "b_scale_layout", "operand_format", "a_type",
                            "b_packing", "a_packing", "pdl", "batch_invariant"})
    if (is_named(field, other)) return false;
  return is_asked_for(field) || field.kind == Kind::count || field.kind == Kind::number ||
         (field.kind >= Kind::enumeration && field.kind <= Kind::whole);
}

bool is_same(const nvfp4_gemm_desc& a, const nvfp4_gemm_desc& b, const GemmField& field) {
  const auto at = [&](const nvfp4_gemm_desc& g) {
    return reinterpret_cast<const char*>(&g) + field.offset;
  };
  return std::memcmp(at(a), at(b), field.bytes) == 0;
}

void copy(const nvfp4_gemm_desc& from, nvfp4_gemm_desc& to, const GemmField& field) {
  std::memcpy(reinterpret_cast<char*>(&to) + field.offset,
              reinterpret_cast<const char*>(&from) + field.offset, field.bytes);
}

void draw(Fields& f, const GemmField& field, Random& random) {
  const nvfp4::Drawn& drawn = field.drawn;
  const auto part = [&] {
    return drawn.least + random.below(uint32_t(drawn.most - drawn.least + 1));
  };
  if (drawn.as == nvfp4::Drawn::As::coin) {
    set_step(f, field, random.below(2));
  } else if (drawn.as == nvfp4::Drawn::As::quotient && random.below(4) != 0) {
    set_step(f, field, part());
  } else if (field.values == nvfp4::Enumeration::type && random.below(2) + field.first != 0) {
    set_step(f, field, 1 + random.below(3));  // those without scales
  } else if (field.values == nvfp4::Enumeration::scale_layout) {
    set_step(f, field, NVFP4_SCALE_LAYOUT_128X4 + random.below(2));
  } else if (field.values != nvfp4::Enumeration::none && field.values != nvfp4::Enumeration::type) {
    set_step(f, field, random.below(uint32_t(count_of(field.values))));
  }
}

Fields drawn_fields(const Shape& shape, Random& random, bool gated) {
  const auto coin = [&] { return random.below(2) != 0; };
  Fields f;
  for (const GemmField& field : rows::gemm)
    if (is_of_epilogue(field) || is_named(field, "alpha")) draw(f, field, random);
  f.b2 = Given{gated};
  if (gated) f.c_type = NVFP4_TYPE_NONE;
  f.d_amax = Given{random.below(4) == 0}, f.d_row_amax = Given{random.below(4) == 0};
  f.c_ld_gap = coin() ? 0 : random.below(9);
  f.d_ld_gap = coin() ? 0 : random.below(9);
  if (shape.l > 1) f.c_batch_gap = random.below(9), f.d_batch_gap = random.below(9);
  const bool scaled = shape.n % 16 == 0 && coin();
  if (scaled) f.d_type = kScaledFormats[random.below(std::size(kScaledFormats))].d_type;
  f.c_is_d = !scaled && coin();
  return possible(f, shape);
}

}  // namespace

std::string to_string(const Shape& s) {
  std::string text =
      std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
  return s.l == 1 ? text : text + " x " + std::to_string(s.l);
}

int64_t bytes_of_type(int32_t type) {
  return type == NVFP4_TYPE_NONE ? 0 : type == NVFP4_TYPE_F32 ? 4 : 2;
}

Fields::Fields() : nvfp4_gemm_desc(NVFP4_GEMM_DESC_INIT) {
  for (const GemmField* field : fields_in_steps()) set_step(*this, *field, simplest_step(*field));
}

// ---- steps --------------------------------------------------------------------------------------

int64_t step_of(const Fields& f, const GemmField& field) {
  if (is_address(field.kind)) return rows::address(&f, field) != nullptr;
  if (field.kind == Kind::number)
    return std::lround(rows::value<float>(&f, field) * float(field.drawn.of));
  if (field.kind == Kind::count) return rows::value<int64_t>(&f, field) / kColumns;
  return rows::value<int32_t>(&f, field);
}

void set_step(Fields& f, const GemmField& field, int64_t step) {
  if (is_address(field.kind)) return rows::set<const void*>(&f, field, Given{step != 0});
  if (field.kind == Kind::number) return rows::set(&f, field, float(step) / float(field.drawn.of));
  if (field.kind == Kind::count) return rows::set(&f, field, step * kColumns);
  rows::set(&f, field, int32_t(step));
}

int64_t simplest_step(const GemmField& field) { return field.first * field.drawn.of; }

std::vector<const GemmField*> fields_in_steps() {
  std::vector<const GemmField*> all;
  for (const GemmField& field : rows::gemm)
    if (field.drawn.as != nvfp4::Drawn::As::fixed && field.drawn.as != nvfp4::Drawn::As::gap)
      all.push_back(&field);
  return all;
}

// ---- what there is ------------------------------------------------------------------------------

std::string to_string(const Fields& f) {
  std::string text;
  char number[40];
  for (const GemmField* field : fields_in_steps()) {
    if (step_of(f, *field) == simplest_step(*field)) continue;
    const bool is_float = field->kind == Kind::number;
    std::snprintf(number, sizeof number, " %g, ",
                  is_float ? double(rows::value<float>(&f, *field)) : double(step_of(f, *field)));
    text += field->name + std::string(number);
  }
  return text + "gaps " + std::to_string(f.c_ld_gap) + " " + std::to_string(f.d_ld_gap) + " " +
         std::to_string(f.c_batch_gap) + " " + std::to_string(f.d_batch_gap) +
         (f.c_is_d ? ", C is D" : "");
}

bool is_general(const Fields& f) {
  const Fields plain;
  return std::any_of(std::begin(rows::gemm), std::end(rows::gemm), [&](const GemmField& field) {
    return is_of_epilogue(field) && holds(f, field.when & ~rows::host) && !is_same(f, plain, field);
  });
}

Fields merged(const Fields& under, const Fields& over) {
  const Fields simplest;
  Fields f = over;
  for (const GemmField& field : rows::gemm)
    if (!is_named(field, "alpha") && is_same(over, simplest, field)) copy(under, f, field);
  return f;
}

void Fields::lay_out(const Shape& s) {
  m = s.m, n = s.n, k = s.k, l = s.l;
  d_ld = line_length() + d_ld_gap, c_ld = line_length() + c_ld_gap;
  d_batch_stride = lines() * d_ld + d_batch_gap;
  c_batch_stride = lines() * c_ld + c_batch_gap;
}

nvfp4_gemm_desc numbers_of(const Fields& f) {
  nvfp4_gemm_desc g = f;
  for (const GemmField& field : rows::gemm) {
    const bool by_value = (field.when & rows::host) != 0;
    const bool unread = (field.when & rows::unread) != 0;
    const uint32_t when = by_value ? field.when & ~(rows::host | rows::has_c) : field.when;
    if (is_address(field.kind) || (!unread && !holds(f, when))) {
      std::memset(reinterpret_cast<char*>(&g) + field.offset, 0, field.bytes);
    } else if (by_value && f.by_pointer()) {
      rows::set(&g, field, 1e30f);  // not looked at: it would show
    }
  }
  return g;
}

bool is_there(const Fields& f, const GemmField& array) {
  if (!is_address(array.kind) || !holds(f, array.when)) return false;
  if (f.c_is_d && is_named(array, "c")) return false;
  const bool asked = is_asked_for(array);
  return asked ? rows::address(&f, array) != nullptr : (array.when & rows::needed) != 0;
}

void set_addresses(const Fields& f, nvfp4_gemm_desc& g, const std::function<void*()>& next) {
  for (const GemmField& field : rows::gemm)
    if (is_there(f, field)) rows::set<const void*>(&g, field, next());
  if (f.c_is_d) g.c = g.d;
}

// ---- draw ---------------------------------------------------------------------------------------

Fields possible(Fields f, const Shape& shape) {
  const Fields simplest;
  const int64_t block = scale_block_of_d(f.d_type);
  if (block != 0) {
    if (shape.n % block != 0) f.d_type = NVFP4_TYPE_F16;
    f.cd_order = NVFP4_CD_ORDER_ROW_MAJOR;
    f.d_ld_gap += f.d_ld_gap % 2, f.d_batch_gap += f.d_batch_gap % 2;
    const bool of_quantizer = f.d_scale_rule == NVFP4_SCALE_RULE_4OVER6;
    if (f.d_type == NVFP4_TYPE_NVFP4 || of_quantizer) f.d_scale_rule = NVFP4_SCALE_RULE_DEFAULT;
    if (f.d_type != NVFP4_TYPE_NVFP4) f.d_tensor_scale = nullptr;
  }
  f.a_tensor_scale_rows = f.a_tensor_scale != nullptr && f.a_tensor_scale_rows != 0;
  for (const GemmField& field : rows::gemm)
    if (is_of_epilogue(field) && (field.when & rows::unread) == 0 &&
        !holds(f, field.when & ~rows::host))
      copy(simplest, f, field);
  f.c_is_d = f.c_is_d && f.c_type == f.d_type;
  if (f.c_is_d) f.c_ld_gap = f.d_ld_gap, f.c_batch_gap = f.d_batch_gap;
  return f;
}

Fields random_fields(const Shape& shape, Random& random) {
  return drawn_fields(shape, random, false);
}

Fields random_gated_fields(const Shape& shape, Random& random) {
  return drawn_fields(shape, random, true);
}

Fields random_column_fields(Random& random) {
  const auto coin = [&] { return random.below(2) != 0; };
  Fields f;
  f.d_type = coin() ? NVFP4_TYPE_F16 : NVFP4_TYPE_BF16;
  f.bias_type = int32_t(random.below(4));
  f.scalar_mode = int32_t(random.below(2));
  f.a_tensor_scale = Given{coin()};
  f.a_tensor_scale_rows = f.a_tensor_scale != nullptr && coin();
  f.b_tensor_scale = Given{coin()};
  if (f.b_tensor_scale != nullptr && coin()) f.b_tensor_scale_columns = 64 * (1 + random.below(2));
  f.alpha = float(int(random.below(400)) - 200) / 300;
  f.d_ld_gap = coin() ? 0 : random.below(9);
  return f;
}

}  // namespace support
