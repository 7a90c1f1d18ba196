// SPDX-License-Identifier: MIT
#include "host/plan/tuning.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "host/base/size.h"
#include "host/base/status.h"
#include "host/plan/plan.h"

namespace nvfp4 {

namespace {

struct Line {
  const char* text;
  size_t length;
  size_t number;  // 1: the first

  bool is(const char* other) const {
    return length == strlen(other) && memcmp(text, other, length) == 0;
  }
  int shown() const { return static_cast<int>(std::min<size_t>(length, 200)); }
};

// Refuses with the line, its number and what it should be.
nvfp4_status refuse(const Line& line, const char* rule) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "text: line %zu, \"%.*s\", %s", line.number, line.shown(),
              line.text, rule);
}

// What is left of the text, line by line. The last one need not end in a newline.
struct Lines {
  const char* at;
  const char* end;
  size_t number = 0;

  bool next(Line* line) {
    if (at == end) return false;
    const char* const stop = std::find(at, end, '\n');
    *line = {at, static_cast<size_t>(stop - at), ++number};
    at = stop == end ? end : stop + 1;
    return true;
  }
};

// A field of a row and what follows it.
struct Fields {
  const char* at;
  const char* end;
  bool more = true;

  Line next() {
    const char* const stop = std::find(at, end, ',');
    const Line field{at, static_cast<size_t>(stop - at), 0};
    more = stop != end;
    at = more ? stop + 1 : end;
    return field;
  }
};

// Digits alone, up to 2^31 - 1, as every size of a problem is.
bool read_number(const Line& field, int64_t* value) {
  if (field.length == 0 || field.length > 10) return false;
  *value = 0;
  for (size_t i = 0; i < field.length; ++i) {
    if (field.text[i] < '0' || field.text[i] > '9') return false;
    *value = 10 * *value + (field.text[i] - '0');
  }
  return *value <= INT32_MAX;
}

struct TypeWord {
  const char* word;
  int32_t type;
};
constexpr TypeWord kTypeWords[] = {
    {"nvfp4", NVFP4_TYPE_NONE}, {"f16", NVFP4_TYPE_F16}, {"bf16", NVFP4_TYPE_BF16}};

bool read_type(const Line& field, int32_t* type) {
  for (const TypeWord& each : kTypeWords) {
    if (!field.is(each.word)) continue;
    *type = each.type;
    return true;
  }
  return false;
}

// ---- the head ----------------------------------------------------------------------------------

nvfp4_status read_exactly(Lines& lines, const char* want, const char* rule) {
  Line line{"", 0, lines.number + 1};
  const bool there = lines.next(&line);
  return there && line.is(want) ? NVFP4_SUCCESS : refuse(line, rule);
}

// "key=" and the value after it.
nvfp4_status read_value(Lines& lines, const char* key, Line* value) {
  Line line{"", 0, lines.number + 1};
  const size_t length = strlen(key);
  if (!lines.next(&line) || line.length <= length || memcmp(line.text, key, length) != 0) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "text: line %zu, \"%.*s\", should begin with %s",
                line.number, line.shown(), line.text, key);
  }
  *value = {line.text + length, line.length - length, line.number};
  return NVFP4_SUCCESS;
}

nvfp4_status read_library(Lines& lines) {
  Line value;
  NVFP4_TRY(read_value(lines, "library=", &value));
  if (value.is(nvfp4_build_info())) return NVFP4_SUCCESS;
  return fail(
      NVFP4_STATUS_INVALID_VALUE,
      "text: the table was measured with \"%.*s\", and this library is \"%.200s\": tune anew",
      value.shown(), value.text, nvfp4_build_info());
}

nvfp4_status read_name(Lines& lines, const char* name) {
  Line value;
  NVFP4_TRY(read_value(lines, "device=", &value));
  if (name == nullptr || value.is(name)) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "text: the table was measured on \"%.*s\", device_name is \"%.200s\": tune anew",
              value.shown(), value.text, name);
}

nvfp4_status read_same(Lines& lines, const char* key, const char* argument, int32_t want) {
  Line value;
  int64_t number;
  NVFP4_TRY(read_value(lines, key, &value));
  if (!read_number(value, &number)) return refuse(value, "is no number");
  if (number == want) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "text: the table was measured on a device of %s%" PRId64 ", %s is %" PRId32
              ": tune anew",
              key, number, argument, want);
}

nvfp4_status read_bits(Lines& lines) {
  Line value;
  NVFP4_TRY(read_value(lines, "bits=", &value));
  return value.is("same") || value.is("any") ? NVFP4_SUCCESS
                                             : refuse(value, "is neither same nor any");
}

nvfp4_status read_head(Lines& lines, const TunedDevice& device) {
  NVFP4_TRY(read_exactly(lines, "nvfp4 tuning 1", "should be \"nvfp4 tuning 1\""));
  NVFP4_TRY(read_library(lines));
  NVFP4_TRY(read_name(lines, device.name));
  NVFP4_TRY(read_same(lines, "compute_capability=", "compute_capability", device.capability));
  NVFP4_TRY(read_same(lines, "sms=", "sm_count", device.sm_count));
  NVFP4_TRY(read_bits(lines));
  constexpr const char* kColumns = "n,k,l,first_m,last_m,a_type,variant";
  return read_exactly(lines, kColumns, "should be n,k,l,first_m,last_m,a_type,variant");
}

// ---- rows --------------------------------------------------------------------------------------

bool sizes_are_in_range(const TuningRow& row) {
  return row.n > 0 && row.k > 0 && row.k % 16 == 0 && row.l > 0 && row.first_m > 0 &&
         row.first_m <= row.last_m;
}

// All of a variant's legality that a row alone decides.
nvfp4_status check_variant(const Line& line, const Architecture& arch, const Line& name,
                           TuningRow* row) {
  char text[64];
  if (name.length >= sizeof text) return refuse(line, "names no variant");
  memcpy(text, name.text, name.length);
  text[name.length] = '\0';
  const Variant* variant;
  uint32_t split;
  if (find_variant(text, &variant, &split) != NVFP4_SUCCESS) {
    return refuse(line, "names no variant of this library, or parts that it does not take");
  }
  if (!serves(*variant, arch)) return refuse(line, "names a variant of another capability");
  if (variant->a_type != row->a_type) return refuse(line, "names a variant of another a_type");
  if (split > ceil_div(row->k, variant->tile_k)) {
    return refuse(line, "names more parts than K has stages of 256");
  }
  row->variant = split == 0 ? variant->name : name_of(*variant, split);
  return NVFP4_SUCCESS;
}

nvfp4_status read_row(const Line& line, const Architecture& arch, TuningRow* row) {
  Fields fields{line.text, line.text + line.length};
  for (int64_t* number : {&row->n, &row->k, &row->l, &row->first_m, &row->last_m}) {
    if (!read_number(fields.next(), number)) {
      return refuse(line, "should begin with n,k,l,first_m,last_m: five numbers below 2^31");
    }
  }
  if (!read_type(fields.next(), &row->a_type)) {
    return refuse(line, "should have nvfp4, f16 or bf16 as a_type");
  }
  const Line name = fields.next();
  if (fields.more) return refuse(line, "has more than 7 fields");
  if (!sizes_are_in_range(*row)) {
    return refuse(line, "should have sizes above 0, K a multiple of 16, first_m <= last_m");
  }
  return check_variant(line, arch, name, row);
}

// Order of the rows: what has to be equal first, then M.
int64_t compare_keys(const TuningRow& x, const TuningRow& y) {
  if (x.n != y.n) return x.n - y.n;
  if (x.k != y.k) return x.k - y.k;
  if (x.l != y.l) return x.l - y.l;
  return x.a_type - y.a_type;
}

bool is_before(const TuningRow& x, const TuningRow& y) {
  const int64_t keys = compare_keys(x, y);
  return keys != 0 ? keys < 0 : x.first_m < y.first_m;
}

nvfp4_status sort_rows(TuningRow* rows, size_t count) {
  std::sort(rows, rows + count, is_before);
  for (size_t i = 1; i < count; ++i) {
    const TuningRow &x = rows[i - 1], &y = rows[i];
    if (compare_keys(x, y) != 0 || y.first_m > x.last_m) continue;
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "text: two rows cover M = %" PRId64 ", N = %" PRId64 ", K = %" PRId64
                ", L = %" PRId64,
                y.first_m, y.n, y.k, y.l);
  }
  return NVFP4_SUCCESS;
}

}  // namespace

size_t count_lines(const char* text, size_t bytes) {
  return static_cast<size_t>(std::count(text, text + bytes, '\n')) + 1;
}

nvfp4_status read_tuning(const char* text, size_t bytes, const TunedDevice& device, TuningRow* rows,
                         size_t* count) {
  uint32_t arch;
  NVFP4_TRY(find_architecture(device.capability, &arch));
  Lines lines{text, text + bytes};
  NVFP4_TRY(read_head(lines, device));
  *count = 0;
  for (Line line; lines.next(&line);) {
    if (line.length == 0 || line.text[0] == '#') continue;
    NVFP4_TRY(read_row(line, kArchitectures[arch], &rows[(*count)++]));
  }
  return sort_rows(rows, *count);
}

const TuningRow* find_row(const TuningRow* rows, size_t count, const nvfp4_gemm_desc& desc) {
  const TuningRow wanted{desc.n, desc.k, desc.l, desc.m, desc.m, desc.a_type, nullptr};
  // The first row that begins beyond M; the one before it is the only one that can cover M.
  const TuningRow* const beyond = std::upper_bound(rows, rows + count, wanted, is_before);
  if (beyond == rows) return nullptr;
  const TuningRow& row = beyond[-1];
  return compare_keys(row, wanted) == 0 && desc.m <= row.last_m ? &row : nullptr;
}

}  // namespace nvfp4
