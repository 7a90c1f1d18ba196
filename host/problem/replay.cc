// SPDX-License-Identifier: MIT
// The command line that reproduces a problem: everything that differs from the defaults of `nvfp4
// run`.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/base/growing_text.h"
#include "host/base/size.h"
#include "host/problem/enumeration.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "host/problem/replay.h"

namespace nvfp4 {

namespace {

// `nvfp4 run` begins the rows of A and B at multiples of 32 elements by default.
int64_t dense_ld(const nvfp4_gemm_desc& g, const Field& field) {
  const bool operand = (field.when & fields::with_k) != 0;
  return operand ? ceil_div(g.k, 32) * 32 : lines_of_cd(g).length;
}

// The option that sets the field to what it is. The library must not read scalars on the device, so
// the command line uses its default values.
void add(const nvfp4_gemm_desc& g, const GemmField& field, Text* line) {
  switch (field.kind) {
    case Kind::size:
    case Kind::count:
      return line->add(" %s %" PRId64, field.option, fields::value<int64_t>(&g, field));
    case Kind::batches:
      if (g.l != field.first) line->add(" %s %" PRId64, field.option, g.l);
      return;
    case Kind::ld: {
      const auto ld = fields::value<int64_t>(&g, field);
      if (ld != dense_ld(g, field)) line->add(" %s %" PRId64, field.option, ld);
      return;
    }
    case Kind::stride:
      if (g.l > 1) line->add(" %s %" PRId64, field.option, fields::value<int64_t>(&g, field));
      return;
    case Kind::number: {
      const auto number = fields::value<float>(&g, field);
      if (number == static_cast<float>(field.first)) return;
      return line->add(" %s %.9g", field.option, f64_from_f32(number));
    }
    case Kind::enumeration: {
      const Word word = enumerator_word(field.values, fields::value<int32_t>(&g, field));
      const Word first = enumerator_word(field.values, field.first);
      if (!fields::is_same_name(word.text, first.text))
        line->add(" %s %s", field.option, word.text);
      return;
    }
    case Kind::choice: {
      const auto value = fields::value<int32_t>(&g, field);
      if (value != field.first) line->add(" %s %" PRId32, field.option, value);
      return;
    }
    case Kind::text:
      if (g.variant != nullptr) line->add(" %s %s", field.option, g.variant);
      return;
    case Kind::flag:
      if (fields::value<int32_t>(&g, field) != 0) line->add(" %s", field.option);
      return;
    case Kind::input: return line->add(" %s", field.option);
    default:
      if (fields::address(&g, field) != nullptr) line->add(" %s", field.option);
  }
}

// All fields of a product, except for the number of rows and of batches of a grouped one.
void add_fields(nvfp4_gemm_desc g, bool grouped, Text* line) {
  if (!may_read_c(g)) g.c_type = NVFP4_TYPE_NONE;
  const uint32_t missing = ~conditions_of(g) & ~uint32_t{fields::unread | fields::needed};
  for (const GemmField& field : fields::gemm) {
    if (field.option[0] == '\0' || (field.when & missing) != 0) continue;
    if (!grouped || !fields::is_same_name(field.name, "m")) add(g, field, line);
  }
}

void add_division(const nvfp4_grouped_desc& x, const nvfp4_gemm_desc& g, Text* line) {
  if (x.rows_kind == NVFP4_ROWS_COUNTS) {
    line->add(" --groups %" PRId64 "x%" PRId64 " --capacity %" PRId64, x.capacity, g.l, x.capacity);
    return;
  }
  const int64_t each = g.m / g.l, more = g.m % g.l;
  line->add(" --groups ");
  if (more > 0) line->add("%" PRId64 "x%" PRId64 ",", each + 1, more);
  line->add("%" PRId64 "x%" PRId64, each, g.l - more);
}

}  // namespace

void write_replay(const nvfp4_gemm_desc& desc, char* text, size_t bytes) {
  Text line(text, bytes);
  line.add("nvfp4 run");
  add_fields(desc, false, &line);
}

void write_grouped_replay(const nvfp4_grouped_desc& x, const nvfp4_gemm_desc& desc, char* text,
                          size_t bytes) {
  nvfp4_gemm_desc one = desc;
  one.l = 1;  // what steps from batch to batch is dense
  Text line(text, bytes);
  line.add("nvfp4 run");
  add_division(x, desc, &line);
  add_fields(one, true, &line);
  if (x.b_shared != 0) line.add(" --b-shared");
  if (x.rows_hint > 0) line.add(" --rows-hint %" PRId32, x.rows_hint);
  if (x.group_alpha != nullptr) line.add(" --group-alpha");
  if (x.bias_group_stride > 0) line.add(" --group-bias");
  if (x.scale_rows != nullptr) line.add(" --scale-rows");
}

}  // namespace nvfp4
