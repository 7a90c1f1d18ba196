// SPDX-License-Identifier: MIT
// See mma_dot.h.
#include "tools/emulator/arithmetic/mma_dot.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "tools/emulator/arithmetic/mma_dot_exact.h"
#include "tools/emulator/arithmetic/mma_element.h"
#include "tools/emulator/arithmetic/mma_vector.h"

namespace emu {
namespace {

using exact_dot::max_depth;
constexpr int wide_bits = 25, narrow_bits = 13;
constexpr int zero_exponent = -126, no_exponent = -(1 << 18);
constexpr uint8_t nan_scale = 0xFF;
using Class = Element::Class;

struct Row {
  Element element[max_depth];
  int32_t scale;      // exponent
  bool special, nan;  // NaN or infinity, NaN alone
};

// Most tiles of 9.0 have 8 or 16 columns: a step as wide as they are does nothing in vain.
template <int Width>
struct Columns {
  alignas(64) int32_t significand[max_depth][Width], exponent[max_depth][Width];
  bool special[Width], any_special;
};

struct Step {
  int model_bits, depth, up, accumulator_up;  // up: from a product's fraction bits to the model's
  AccumulatorType type;
  bool raises, saturate;
  uint32_t kept;      // bits of a finite result
  bool may_be_exact;  // false: exact_dot does not implement these settings
  int32_t scale_d;
  int32_t of_zero;  // exponent of a product that does not raise, and of a zero accumulator
};

void load_row(ElementType type, const uint8_t* bytes, const uint8_t* scale, bool negate, Row& row) {
  decode_elements(type, bytes, row.element);
  row.nan = scale && *scale == nan_scale;
  row.scale = scale ? int(*scale) - 127 : 0;
  bool infinite = false;
  for (uint32_t k = 0; k < element_count(type); ++k) {
    if (negate) row.element[k].significand = -row.element[k].significand;
    row.nan |= row.element[k].cls == Class::nan;
    infinite |= row.element[k].cls == Class::infinite;
  }
  row.special = row.nan || infinite;
}

template <int Width>
void load_columns(const std::vector<Row>& rows, uint32_t first, int depth,
                  Columns<Width>& columns) {
  std::memset(static_cast<void*>(&columns), 0, sizeof columns);
  for (uint32_t i = 0; i < Width && first + i < rows.size(); ++i) {
    const Row& row = rows[first + i];
    columns.special[i] = row.special;
    columns.any_special |= row.special;
    for (int k = 0; k < depth; ++k) {
      columns.significand[k][i] = row.element[k].significand;
      columns.exponent[k][i] = row.element[k].exponent + row.scale;
    }
  }
}

struct Accumulator {
  int32_t significand, exponent;
};

EMU_INLINE Accumulator decode_accumulator(uint32_t bits, AccumulatorType type, int32_t of_zero) {
  const bool half = type == AccumulatorType::f16;
  const int32_t field = int32_t(half ? bits >> 10 & 0x1F : bits >> 23 & 0xFF);
  const int32_t fraction = int32_t(bits & (half ? 0x3FFu : 0x7FFFFFu));
  const int32_t magnitude = field ? fraction | (half ? 1 << 10 : 1 << 23) : fraction;
  const int32_t exponent = (field ? field : 1) - (half ? 15 : 127);
  const bool negative = half ? bits >> 15 & 1 : bits >> 31;
  return {negative ? -magnitude : magnitude, magnitude ? exponent : of_zero};
}

// |value| << up >> down, or >> -up, with the sign put back: cutting is toward zero.
EMU_INLINE int32_t cut(int32_t value, int32_t up, int32_t down) {
  const int32_t sign = value >> 31;
  const uint32_t magnitude =
      uint32_t((value ^ sign) - sign) << std::max(up, 0) >> std::min(down - std::min(up, 0), 31);
  return (int32_t(magnitude) ^ sign) - sign;
}

// Products stay below 2^2, so a term stays below 2^27 and eight of them in 32 bits.
template <int Width>
EMU_INLINE void add_products(const Row& row, const Columns<Width>& columns, const uint32_t* c,
                             const Step& s, MmaSums<Width>& out) {
  alignas(64) int32_t product[max_depth][Width], exponent[max_depth][Width];
  alignas(64) int32_t accumulator[Width], accumulator_exponent[Width];
  for (int n = 0; n < Width; ++n) {
    const Accumulator a = decode_accumulator(c[n], s.type, s.of_zero);
    accumulator[n] = a.significand;
    out.largest[n] = accumulator_exponent[n] = a.exponent - s.scale_d;
  }
  for (int k = 0; k < s.depth; ++k) {
    const int32_t significand = row.element[k].significand,
                  row_exponent = row.element[k].exponent + row.scale;
    for (int n = 0; n < Width; ++n) {
      product[k][n] = significand * columns.significand[k][n];
      const int32_t e = row_exponent + columns.exponent[k][n];
      exponent[k][n] = product[k][n] == 0 && !s.raises ? s.of_zero : e;
      out.largest[n] = std::max(out.largest[n], exponent[k][n]);
    }
  }
  for (int n = 0; n < Width; ++n)
    out.sum[n] = cut(accumulator[n], s.accumulator_up, out.largest[n] - accumulator_exponent[n]);
  for (int k = 0; k < s.depth; k += 8) {
    alignas(64) int32_t part[Width] = {};
    for (int j = k; j < k + 8; ++j)
      for (int n = 0; n < Width; ++n)
        part[n] += cut(product[j][n], s.up, out.largest[n] - exponent[j][n]);
    for (int n = 0; n < Width; ++n) out.sum[n] += part[n];
  }
}

// NaN and infinity by IEEE's rules, if there are any. A zero has significand 0.
struct Special {
  bool nan = false, plus = false, minus = false;

  void add(bool is_nan, bool infinite, bool negative) {
    nan |= is_nan;
    plus |= infinite && !negative;
    minus |= infinite && negative;
  }
  void add_product(const Element& a, const Element& b) {
    const bool infinite = a.cls == Class::infinite || b.cls == Class::infinite;
    const bool zero = (a.significand == 0 && a.cls == Class::finite) ||
                      (b.significand == 0 && b.cls == Class::finite);
    add(a.cls == Class::nan || b.cls == Class::nan || (infinite && zero), infinite,
        (a.significand < 0) != (b.significand < 0));
  }
  std::optional<uint32_t> bits(bool half) const {
    if (nan || (plus && minus)) return half ? nan_f16 : nan_f32;
    if (plus) return half ? 0x7C00 : 0x7F800000;
    if (minus) return half ? 0xFC00 : 0xFF800000;
    return std::nullopt;
  }
};

std::optional<uint32_t> special(const Row& a, const Row& b, uint32_t c, const Step& s) {
  const bool half = s.type == AccumulatorType::f16;
  const uint32_t infinity = half ? 0x7C00 : 0x7F800000, sign = half ? 0x8000 : 0x80000000;
  const uint32_t magnitude = c & (sign - 1);
  if (magnitude > infinity || a.nan || b.nan) return half ? nan_f16 : nan_f32;
  Special all;
  all.add(false, magnitude == infinity, c & sign);
  for (int k = 0; k < s.depth; ++k) all.add_product(a.element[k], b.element[k]);
  return all.bits(half);
}

EMU_INLINE bool is_special(uint32_t c, AccumulatorType type) {
  const uint32_t infinity = type == AccumulatorType::f16 ? 0x7C00 : 0x7F800000;
  return (c & infinity) == infinity;
}

template <int Width>
EMU_INLINE bool any_special(const uint32_t* c, AccumulatorType type) {
  uint32_t any = 0;
  for (int n = 0; n < Width; ++n) any |= is_special(c[n], type);
  return any != 0;
}

// By the model itself.
template <int Width>
EMU_INLINE void run_row(const Row& row, const std::vector<Row>& b, uint32_t first,
                        const Columns<Width>& columns, uint32_t used, const uint32_t* c,
                        const Step& s, uint32_t* result) {
  MmaSums<Width> sums;
  add_products(row, columns, c, s, sums);
  if (s.type == AccumulatorType::f16)
    for (int n = 0; n < Width; ++n)
      result[n] = round_to_half(sums.sum[n], sums.largest[n] - s.model_bits);
  else if (!round_normal(sums, s.model_bits, result))
    for (int n = 0; n < Width; ++n)
      result[n] = round_toward_zero(sums.sum[n], sums.largest[n] - s.model_bits);
  if (s.of_zero == no_exponent)
    for (int n = 0; n < Width; ++n) result[n] = result[n] << 1 ? result[n] : 0;
  for (int n = 0; n < Width; ++n) result[n] &= s.kept;
  if (row.special || columns.any_special || any_special<Width>(c, s.type))
    for (uint32_t n = 0; n < used; ++n)
      if (row.special || columns.special[n] || is_special(c[n], s.type))
        result[n] = special(row, b[first + n], c[n], s).value_or(result[n]);
}

struct Operands {
  std::vector<Row> a, b;
  std::vector<exact_dot::Line> a_lines, b_lines;  // if Step::may_be_exact
};

// The exact way's columns are made first; the model's, when a row needs them.
template <int Width>
EMU_INLINE void run_columns(const Operands& of, uint32_t first, uint32_t used, uint32_t* d,
                            size_t stride, bool accumulate, const Step& s) {
  alignas(64) uint32_t c[Width] = {}, result[Width];
  exact_dot::Columns<Width> lines;
  Columns<Width> columns;
  bool loaded = false;
  if (s.may_be_exact) exact_dot::fill(&of.b_lines[first], used, s.depth, s.model_bits, lines);
  for (size_t r = 0; r < of.a.size(); ++r, d += stride) {
    if (accumulate) std::memcpy(c, d, used * sizeof *d);
    if (!s.may_be_exact || !exact_dot::fits(of.a_lines[r], lines, s.model_bits) ||
        !exact_dot::add(of.a_lines[r], lines, c, s.depth, s.kept, result)) {
      if (!loaded) load_columns(of.b, first, s.depth, columns);
      loaded = true;
      run_row(of.a[r], of.b, first, columns, used, c, s, result);
    }
    std::memcpy(d, result, used * sizeof *d);
  }
}

// kind::i8: exact, then wrapped or saturated.
template <int Width>
EMU_INLINE void run_integers(const std::vector<Row>& rows, const Columns<Width>& columns,
                             uint32_t used, uint32_t* d, size_t stride, bool accumulate,
                             bool saturate) {
  alignas(64) int32_t sum[Width];
  for (size_t r = 0; r < rows.size(); ++r, d += stride) {
    std::fill_n(sum, Width, 0);
    for (int k = 0; k < max_depth; ++k)
      for (int n = 0; n < Width; ++n)
        sum[n] += rows[r].element[k].significand * columns.significand[k][n];
    for (uint32_t n = 0; n < used; ++n) {
      int64_t total = int64_t(sum[n]) + (accumulate ? int32_t(d[n]) : 0);
      if (saturate) total = std::clamp<int64_t>(total, INT32_MIN, INT32_MAX);
      d[n] = uint32_t(total);
    }
  }
}

template <int Width>
EMU_INLINE void run(const DotOperands& o, const Operands& of, const Step& s, uint32_t* d,
                    size_t stride) {
  Columns<Width> columns;
  for (uint32_t first = 0; first < o.n; first += Width) {
    const uint32_t used = std::min(uint32_t(Width), o.n - first);
    if (o.d_type != AccumulatorType::s32) {
      run_columns<Width>(of, first, used, d + first, stride, o.accumulate, s);
      continue;
    }
    load_columns(of.b, first, s.depth, columns);
    run_integers(of.a, columns, used, d + first, stride, o.accumulate, o.saturate);
  }
}

// Clones are made of functions, not of templates.
EMU_CLONES void run_8(const DotOperands& o, const Operands& of, const Step& s, uint32_t* d,
                      size_t stride) {
  run<8>(o, of, s, d, stride);
}
EMU_CLONES void run_16(const DotOperands& o, const Operands& of, const Step& s, uint32_t* d,
                       size_t stride) {
  run<16>(o, of, s, d, stride);
}
EMU_CLONES void run_32(const DotOperands& o, const Operands& of, const Step& s, uint32_t* d,
                       size_t stride) {
  run<32>(o, of, s, d, stride);
}

void find_lines(const std::vector<Row>& rows, int fraction_bits, int depth,
                std::vector<exact_dot::Line>& lines) {
  lines.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r)
    lines[r] = exact_dot::line_of(rows[r].element, depth, fraction_bits);
}

}  // namespace

void mma_dot(const DotOperands& o, uint32_t* d, size_t stride) {
  thread_local Operands of;  // kept: allocating costs as much as a small MMA
  of.a.resize(o.rows);
  of.b.resize(o.n);
  for (uint32_t r = 0; r < o.rows; ++r)
    load_row(o.a_type, o.a + r * 32, o.sfa ? o.sfa + r : nullptr, o.negate_a, of.a[r]);
  for (uint32_t r = 0; r < o.n; ++r)
    load_row(o.b_type, o.b + r * 32, o.sfb ? o.sfb + r : nullptr, o.negate_b, of.b[r]);
  const int model_bits = o.narrow ? narrow_bits : wide_bits;
  const bool raises = o.zero_raises && !o.zero_absent;
  const Step s{model_bits,
               int(element_count(o.a_type)),
               model_bits - fraction_bits(o.a_type) - fraction_bits(o.b_type),
               model_bits - (o.d_type == AccumulatorType::f16 ? 10 : 23),
               o.d_type,
               raises,
               o.saturate,
               o.narrow && o.d_type == AccumulatorType::f32 ? ~0u << (23 - narrow_bits) : ~0u,
               o.d_type == AccumulatorType::f32 && !raises && !o.sfa && !o.sfb && o.scale_d == 0,
               int32_t(o.scale_d),
               o.zero_absent ? no_exponent : zero_exponent};
  if (s.may_be_exact) {
    find_lines(of.a, fraction_bits(o.a_type), s.depth, of.a_lines);
    find_lines(of.b, fraction_bits(o.b_type), s.depth, of.b_lines);
  }
  const auto columns = o.n <= 8 ? run_8 : o.n <= 16 ? run_16 : run_32;
  columns(o, of, s, d, stride);
}

}  // namespace emu
