// SPDX-License-Identifier: MIT
// Floating-point arithmetic and conversion in integers.
#include "tools/emulator/arithmetic/softfloat.h"

#include <algorithm>
#include <bit>

#include "tools/emulator/arithmetic/softfloat_normal.h"

namespace emu::soft {

namespace {

using Kind = Number::Kind;

int top_bit(uint128 v) {
  uint64_t high = uint64_t(v >> 64), low = uint64_t(v);
  return high ? 127 - std::countl_zero(high) : 63 - std::countl_zero(low);
}

// v >> n, with everything shifted out gathered in bit 0.
uint128 shift_sticky(uint128 v, int n) {
  if (n <= 0) return v;
  if (n > 127) return v != 0;
  return v >> n | ((v & ((uint128(1) << n) - 1)) != 0);
}

// v / 2^n (n >= 0) rounded to an integer.
uint128 shift_round(uint128 v, int n, Round round, bool negative) {
  if (n <= 0) return v << -n;
  if (n > 127) {
    v = v != 0;  // below one half of the last place, whatever it is
    n = 2;
  }
  uint128 kept = v >> n, rest = v & ((uint128(1) << n) - 1), half = uint128(1) << (n - 1);
  switch (round) {
    case Round::nearest: return kept + (rest > half || (rest == half && (kept & 1)));
    case Round::zero: return kept;
    case Round::down: return kept + (rest && negative);
    case Round::up: return kept + (rest && !negative);
  }
  return kept;
}

Number special(Kind kind, bool negative = false) {
  Number n;
  n.kind = kind;
  n.negative = negative;
  return n;
}

bool is_nan(const Number& n) { return n.kind == Kind::nan; }

// What a result beyond the largest finite number becomes.
uint64_t overflow(bool negative, const Format& to, const Rules& rules) {
  Round toward_zero = negative ? Round::up : Round::down;
  if (!to.has_infinity || rules.satfinite || rules.round == Round::zero ||
      rules.round == toward_zero)
    return to.largest();
  return to.infinity();
}

uint64_t encode_finite(const Number& n, const Format& to, const Rules& rules) {
  int exponent = std::max(n.exponent + top_bit(n.significand), 1 - to.bias());
  int quantum = exponent - to.mantissa_bits;
  uint128 kept = shift_round(n.significand, quantum - n.exponent, rules.round, n.negative);
  // The implicit bit of a normal number adds one to the exponent field; so does a carry.
  int64_t field = int64_t(exponent + to.bias() - 1);
  if (field > int64_t(1) << 20) return overflow(n.negative, to, rules);
  uint64_t code = (uint64_t(field) << to.mantissa_bits) + uint64_t(kept);
  if (code > to.largest()) return overflow(n.negative, to, rules);
  if (rules.ftz && code < 1ull << to.mantissa_bits) return 0;
  return uint64_t(code);
}

uint64_t clamp_to_one(uint64_t code, const Format& to) {
  uint64_t one = uint64_t(to.bias()) << to.mantissa_bits;
  return code & to.sign_bit() ? 0 : std::min(code, one);
}

// a + b of finite numbers. Both are moved up so that the larger has its top bit at 120; bits of the
// smaller that fall below bit 0 are gathered there, far below any rounding position.
Number sum(Number a, Number b, Round round) {
  for (Number* n : {&a, &b}) {
    int up = 120 - top_bit(n->significand);
    n->significand <<= up;
    n->exponent -= up;
  }
  if (a.exponent < b.exponent) std::swap(a, b);
  b.significand = shift_sticky(b.significand, a.exponent - b.exponent);
  if (a.negative == b.negative) {
    a.significand += b.significand;
    return a;
  }
  if (a.significand == b.significand) return special(Kind::zero, round == Round::down);
  if (a.significand < b.significand) {
    std::swap(a.significand, b.significand);
    a.negative = b.negative;
  }
  a.significand -= b.significand;
  return a;
}

Number plus(const Number& a, const Number& b, Round round) {
  if (is_nan(a) || is_nan(b)) return special(Kind::nan);
  if (a.kind == Kind::infinite || b.kind == Kind::infinite) {
    if (a.kind == b.kind && a.negative != b.negative) return special(Kind::nan);
    return a.kind == Kind::infinite ? a : b;
  }
  if (a.kind == Kind::zero && b.kind == Kind::zero)
    return special(Kind::zero, a.negative == b.negative ? a.negative : round == Round::down);
  if (a.kind == Kind::zero) return b;
  if (b.kind == Kind::zero) return a;
  return sum(a, b, round);
}

Number times(const Number& a, const Number& b) {
  bool negative = a.negative != b.negative;
  if (is_nan(a) || is_nan(b)) return special(Kind::nan);
  if (a.kind == Kind::infinite || b.kind == Kind::infinite)
    return special(a.kind == Kind::zero || b.kind == Kind::zero ? Kind::nan : Kind::infinite,
                   negative);
  if (a.kind == Kind::zero || b.kind == Kind::zero) return special(Kind::zero, negative);
  return {Kind::finite, negative, a.exponent + b.exponent, a.significand * b.significand};
}

Number over(const Number& a, const Number& b) {
  bool negative = a.negative != b.negative;
  if (is_nan(a) || is_nan(b) || (a.kind == b.kind && a.kind != Kind::finite))
    return special(Kind::nan);
  if (a.kind == Kind::infinite || b.kind == Kind::zero) return special(Kind::infinite, negative);
  if (a.kind == Kind::zero || b.kind == Kind::infinite) return special(Kind::zero, negative);
  // The dividend moves up to the top: 64 more bits would be too few for a subnormal one. One bit is
  // left free for the sticky bit.
  const int shift = 62 + std::countl_zero(uint64_t(a.significand));
  uint128 dividend = a.significand << shift;
  uint128 quotient = dividend / b.significand << 1 | (dividend % b.significand != 0);
  return {Kind::finite, negative, a.exponent - b.exponent - shift - 1, quotient};
}

}  // namespace

Number decode(uint64_t code, const Format& from, bool ftz) {
  bool negative = code & from.sign_bit();
  uint64_t magnitude = code & (from.sign_bit() - 1);
  uint64_t exponent = magnitude >> from.mantissa_bits;
  uint64_t mantissa = magnitude & ((1ull << from.mantissa_bits) - 1);
  if (from.has_infinity && magnitude >= from.infinity())
    return special(magnitude == from.infinity() ? Kind::infinite : Kind::nan, negative);
  if (!from.has_infinity && from.has_nan && magnitude == from.nan()) return special(Kind::nan);
  if (magnitude == 0 || (ftz && exponent == 0)) return special(Kind::zero, negative);
  if (exponent) mantissa |= 1ull << from.mantissa_bits;
  int scale = int(std::max<uint64_t>(exponent, 1)) - from.bias() - from.mantissa_bits;
  return {Kind::finite, negative, scale, mantissa};
}

uint64_t encode(const Number& n, const Format& to, const Rules& rules) {
  // .relu keeps a NaN, .sat turns it into +0, and a format without NaN gets its largest number.
  if (is_nan(n)) return rules.sat ? 0 : to.has_nan ? to.nan() : to.largest();
  uint64_t code = 0;
  if (n.kind == Kind::finite) code = encode_finite(n, to, rules);
  if (n.kind == Kind::infinite)
    code = to.has_infinity && !rules.satfinite ? to.infinity() : to.largest();
  if (n.negative) code |= to.sign_bit();
  if (rules.relu && n.negative) return 0;
  return rules.sat ? clamp_to_one(code, to) : code;
}

namespace {

// softfloat_normal.h may apply; .ftz does nothing to normal numbers and zeros.
bool is_plain(const Rules& r) {
  return r.round == Round::nearest && !r.sat && !r.relu && !r.satfinite;
}

// Calls f(NormalOf) for the format's, if it has one.
template <class F>
bool by_normal(const Format& of, const Rules& rules, F f) {
  if (!is_plain(rules)) return false;
  switch (of.mantissa_bits) {
    case f32.mantissa_bits: return f.template operator()<NormalOf<f32>>();
    case f16.mantissa_bits: return f.template operator()<NormalOf<f16>>();
    case bf16.mantissa_bits: return f.template operator()<NormalOf<bf16>>();
    default: return false;
  }
}

}  // namespace

uint64_t add(uint64_t a, uint64_t b, const Format& f, const Rules& rules) {
  uint64_t r;
  if (by_normal(f, rules, [&]<class N>() { return N::fma(a, N::one, b, &r); })) return r;
  return encode(plus(decode(a, f, rules.ftz), decode(b, f, rules.ftz), rules.round), f, rules);
}

uint64_t mul(uint64_t a, uint64_t b, const Format& f, const Rules& rules) {
  uint64_t r;
  if (by_normal(f, rules, [&]<class N>() { return N::mul(a, b, &r); })) return r;
  return encode(times(decode(a, f, rules.ftz), decode(b, f, rules.ftz)), f, rules);
}

uint64_t fma(uint64_t a, uint64_t b, uint64_t c, const Format& f, const Rules& rules) {
  uint64_t r;
  if (by_normal(f, rules, [&]<class N>() { return N::fma(a, b, c, &r); })) return r;
  Number product = times(decode(a, f, rules.ftz), decode(b, f, rules.ftz));
  return encode(plus(product, decode(c, f, rules.ftz), rules.round), f, rules);
}

uint64_t div(uint64_t a, uint64_t b, const Format& f, const Rules& rules) {
  return encode(over(decode(a, f, rules.ftz), decode(b, f, rules.ftz)), f, rules);
}

uint64_t convert(uint64_t code, const Format& from, const Format& to, const Rules& rules) {
  return encode(decode(code, from, rules.ftz), to, rules);
}

uint64_t to_integral(uint64_t code, const Format& f, const Rules& rules) {
  Number n = decode(code, f, rules.ftz);
  if (n.kind == Kind::finite && n.exponent < 0) {
    n.significand = shift_round(n.significand, -n.exponent, rules.round, n.negative);
    n.exponent = 0;
    if (!n.significand) n.kind = Kind::zero;
  }
  return encode(n, f, rules);
}

Number from_unsigned(uint64_t value) {
  if (!value) return special(Kind::zero);
  return {Kind::finite, false, 0, value};
}

Number from_integer(int64_t value) {
  Number n = from_unsigned(value < 0 ? -uint64_t(value) : uint64_t(value));
  n.negative = value < 0;
  return n;
}

uint64_t to_integer(const Number& n, uint32_t bits, bool is_signed, Round round) {
  uint64_t all = bits == 64 ? ~0ull : (1ull << bits) - 1, top = 1ull << (bits - 1);
  if (is_nan(n)) return bits == 64 ? top : 0;
  uint64_t most = n.negative ? (is_signed ? top : 0) : (is_signed ? top - 1 : all);
  uint64_t magnitude = 0;
  if (n.kind == Kind::infinite || (n.kind == Kind::finite && n.exponent > 64)) {
    magnitude = most;
  } else if (n.kind == Kind::finite) {
    uint128 whole = shift_round(n.significand, -n.exponent, round, n.negative);
    magnitude = uint64_t(std::min<uint128>(whole, most));
  }
  return (n.negative ? -magnitude : magnitude) & all;
}

uint64_t encode_ue8m0(uint64_t code, const Format& from, Round round, bool satfinite) {
  constexpr int bias = 127;
  constexpr uint64_t largest = 0xFE, nan = 0xFF;
  Number n = decode(code, from);
  if (is_nan(n)) return nan;
  if (n.kind == Kind::infinite) return satfinite ? largest : nan;
  if (n.kind == Kind::zero) return 0;
  int top = top_bit(n.significand), exponent = n.exponent + top;
  bool power_of_two = n.significand == uint128(1) << top;
  if (round == Round::up && !power_of_two) ++exponent;
  if (exponent > int(largest) - bias) return satfinite ? largest : nan;
  return uint64_t(std::max(exponent + bias, 0));
}

Number decode_ue8m0(uint64_t code) {
  if (code == 0xFF) return special(Kind::nan);
  return {Kind::finite, false, int(code) - 127, 1};
}

uint64_t flush(uint64_t code, const Format& f) {
  uint64_t magnitude = code & (f.sign_bit() - 1);
  return magnitude < 1ull << f.mantissa_bits ? code & f.sign_bit() : code;
}

namespace {
bool nan_code(uint64_t code, const Format& f) { return (code & (f.sign_bit() - 1)) > f.infinity(); }

// Codes as integers in the order of their values; -0 comes just below +0.
int64_t rank(uint64_t code, const Format& f) {
  int64_t magnitude = code & (f.sign_bit() - 1);
  return code & f.sign_bit() ? -1 - magnitude : magnitude;
}
}  // namespace

Order compare(uint64_t a, uint64_t b, const Format& f, bool ftz) {
  if (ftz) a = flush(a, f), b = flush(b, f);
  if (nan_code(a, f) || nan_code(b, f)) return Order::unordered;
  if (((a | b) & (f.sign_bit() - 1)) == 0) return Order::equal;
  int64_t x = rank(a, f), y = rank(b, f);
  return x < y ? Order::less : x > y ? Order::greater : Order::equal;
}

namespace {
uint64_t extreme(uint64_t a, uint64_t b, const Format& f, bool ftz, bool propagate, bool larger) {
  if (ftz) a = flush(a, f), b = flush(b, f);
  bool nan_a = nan_code(a, f), nan_b = nan_code(b, f);
  if ((nan_a && nan_b) || (propagate && (nan_a || nan_b))) return f.nan();
  if (nan_a || nan_b) return nan_a ? b : a;
  return (rank(a, f) < rank(b, f)) == larger ? b : a;
}
}  // namespace

uint64_t minimum(uint64_t a, uint64_t b, const Format& f, bool ftz, bool propagate) {
  return extreme(a, b, f, ftz, propagate, false);
}
uint64_t maximum(uint64_t a, uint64_t b, const Format& f, bool ftz, bool propagate) {
  return extreme(a, b, f, ftz, propagate, true);
}

}  // namespace emu::soft
