// SPDX-License-Identifier: MIT
// Fixed-point numbers have 62 bits after the point.
#include "tools/emulator/arithmetic/softmath.h"

#include <array>
#include <bit>
#include <cstddef>

namespace emu::soft {

namespace {

using Kind = Number::Kind;
__extension__ typedef __int128 int128;

constexpr int point = 62;
constexpr uint64_t one = 1ull << point;

int top_bit(uint128 v) {
  const uint64_t high = uint64_t(v >> 64);
  return high ? 127 - std::countl_zero(high) : 63 - std::countl_zero(uint64_t(v));
}

// The largest integer whose square is at most v < 2^126.
uint64_t root(uint128 v) {
  uint64_t r = 0;
  for (uint64_t bit = 1ull << 62; bit; bit >>= 1)
    if (uint128(r | bit) * (r | bit) <= v) r |= bit;
  return r;
}

Number special(Kind kind, bool negative = false) {
  Number n;
  n.kind = kind;
  n.negative = negative;
  return n;
}

// The root of a positive number, with a sticky bit at its end.
Number root_of(const Number& n) {
  int up = 124 - top_bit(n.significand);
  if ((n.exponent - up) % 2) --up;
  // No bit is shifted out: a decoded number and a quotient have their top bit below bit 124.
  const uint128 v = up >= 0 ? n.significand << up : n.significand >> -up;
  const uint64_t r = root(v);
  return {Kind::finite, false, (n.exponent - up) / 2 - 1, uint128(r) << 1 | (uint128(r) * r != v)};
}

// 2^(2^-i), by repeated roots.
const std::array<uint64_t, point + 1>& powers() {
  static const std::array<uint64_t, point + 1> table = [] {
    std::array<uint64_t, point + 1> t{};
    t[0] = one << 1;
    for (int i = 1; i <= point; ++i) t[size_t(i)] = root(uint128(t[size_t(i) - 1]) << point);
    return t;
  }();
  return table;
}

// 2^v for a fixed-point v of magnitude below 2^12.
Number power(int128 v) {
  const int whole = int(v >> point);
  const uint64_t fraction = uint64_t(v) & (one - 1);
  uint64_t r = one;
  for (int i = 1; i <= point; ++i)
    if (fraction >> (point - i) & 1) r = uint64_t(uint128(r) * powers()[size_t(i)] >> point);
  return {Kind::finite, false, whole - point, r};
}

int128 fixed(const Number& n) {
  const int up = n.exponent + point;
  const uint128 v = up >= 0 ? n.significand << up : up > -128 ? n.significand >> -up : 0;
  return n.negative ? -int128(v) : int128(v);
}

// 1 / (2 pi), 256 bits after the point.
constexpr uint64_t turns_per_radian[] = {0x28BE60DB9391054A, 0x7F09D5F47D4D3770, 0x36D8A5664F10E410,
                                         0x7F9458EAF7AEF158};
// 64 of its bits from place `from`, which may lie before the point.
uint64_t turn_bits(int from) {
  uint64_t bits = 0;
  for (int i = 0; i < 64; ++i) {
    const int at = from + i;
    const bool set = at >= 0 && at < 256 && turns_per_radian[at / 64] >> (63 - at % 64) & 1;
    bits = bits << 1 | set;
  }
  return bits;
}

// The fraction of a turn that |n| radians are, with 64 bits; n has at most 24 significant ones.
uint64_t turn_of(const Number& n) {
  const uint128 window = uint128(turn_bits(n.exponent)) << 32 | turn_bits(n.exponent + 64) >> 32;
  return uint64_t(n.significand * window >> 32);
}

// sin(2 pi t), or cos, for t of at most 1/8, by its series.
uint64_t series(uint64_t t, bool cosine) {
  constexpr uint64_t two_pi_by_4 = 0x6487ED5110B4611A;  // 2 pi / 4, 62 bits after the point
  const uint64_t x = uint64_t(uint128(t) * two_pi_by_4 >> 62);
  const uint64_t square = uint64_t(uint128(x) * x >> point);
  uint64_t term = cosine ? one : x, sum = term;
  bool less = true;
  for (uint64_t k = cosine ? 1 : 2; term; k += 2, less = !less) {
    term = uint64_t(uint128(term) * square >> point) / (k * (k + 1));
    sum = less ? sum - term : sum + term;
  }
  return sum;
}

uint64_t wave(const Number& n, bool cosine, const Format& f, const Rules& rules) {
  const uint64_t t = turn_of(n) + (cosine ? 1ull << 62 : 0);  // cos x = sin(x + 1/4 turn)
  const bool negative = (t >> 63) != (!cosine && n.negative);
  const uint64_t half = t << 1 >> 1;                                 // of a half turn, 63 bits
  const uint64_t quarter = half >> 62 ? (1ull << 63) - half : half;  // mirrored at 1/4
  const bool near_top = quarter > 1ull << 61;
  const uint64_t value = near_top ? series((1ull << 62) - quarter, true) : series(quarter, false);
  if (!value) return 0;
  return encode({Kind::finite, negative, -point, value}, f, rules);
}

int magnitude(const Number& n) { return n.exponent + top_bit(n.significand); }

bool is_beside_one(const Number& n) {
  const int128 away = magnitude(n) == 0 || magnitude(n) == -1 ? fixed(n) - int128(one) : one;
  return away < int128(one >> 6) && -away < int128(one >> 6);
}

// 2 log2(e) artanh((x - 1) / (x + 1)), so that a small logarithm has as many bits as others.
Number log2_beside_one(const Number& n) {
  constexpr uint64_t log2_e = 0x5C551D94AE0BF85D;  // 62 bits after the point
  const uint64_t x = uint64_t(fixed(n));
  const bool below = x < one;
  const uint64_t y = uint64_t((uint128(below ? one - x : x - one) << point) / (one + x));
  const uint64_t square = uint64_t(uint128(y) * y >> point);
  uint64_t sum = 0;
  for (uint64_t term = y, k = 1; term; k += 2) {
    sum += term / k;
    term = uint64_t(uint128(term) * square >> point);
  }
  return {sum ? Kind::finite : Kind::zero, sum && below, -point,
          uint128(sum) * log2_e >> (point - 1)};
}

}  // namespace

uint64_t sqrt(uint64_t a, const Format& f, const Rules& rules) {
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::finite && n.negative) return encode(special(Kind::nan), f, rules);
  if (n.kind == Kind::infinite && n.negative) return encode(special(Kind::nan), f, rules);
  return encode(n.kind == Kind::finite ? root_of(n) : n, f, rules);
}

uint64_t rsqrt(uint64_t a, const Format& f, const Rules& rules) {
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::zero) return encode(special(Kind::infinite, n.negative), f, rules);
  if (n.kind == Kind::nan || n.negative) return encode(special(Kind::nan), f, rules);
  if (n.kind == Kind::infinite) return 0;
  // 1 / n with 64 bits and more, then its root.
  const uint128 dividend = uint128(1) << (63 + top_bit(n.significand));
  return encode(root_of({Kind::finite, false, -n.exponent - 63 - top_bit(n.significand),
                         dividend / n.significand}),
                f, rules);
}

uint64_t exp2(uint64_t a, const Format& f, const Rules& rules) {
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::nan) return encode(n, f, rules);
  if (n.kind == Kind::zero) return encode({Kind::finite, false, 0, 1}, f, rules);
  if (n.kind == Kind::infinite || magnitude(n) >= 12)
    return encode(special(n.negative ? Kind::zero : Kind::infinite), f, rules);
  return encode(power(fixed(n)), f, rules);
}

uint64_t log2(uint64_t a, const Format& f, const Rules& rules) {
  constexpr int digits = 44;
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::zero) return encode(special(Kind::infinite, true), f, rules);
  if (n.kind == Kind::nan || n.negative) return encode(special(Kind::nan), f, rules);
  if (n.kind == Kind::infinite) return encode(n, f, rules);
  if (is_beside_one(n)) return encode(log2_beside_one(n), f, rules);
  uint128 m = n.significand << (point - top_bit(n.significand));
  int128 result = magnitude(n);
  for (int i = 0; i < digits; ++i) {
    m = m * m >> point;
    const bool two = m >> (point + 1);
    if (two) m >>= 1;
    result = result * 2 + two;
  }
  const bool negative = result < 0;
  return encode({Kind::finite, negative, -digits, uint128(negative ? -result : result)}, f, rules);
}

// sin x is x below 2^-13, and cos x is 1, to f32's last bit.
uint64_t sin(uint64_t a, const Format& f, const Rules& rules) {
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::infinite) return encode(special(Kind::nan), f, rules);
  if (n.kind != Kind::finite || magnitude(n) < -13) return encode(n, f, rules);
  return wave(n, false, f, rules);
}

uint64_t cos(uint64_t a, const Format& f, const Rules& rules) {
  const Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::infinite) return encode(special(Kind::nan), f, rules);
  if (n.kind == Kind::nan) return encode(n, f, rules);
  if (n.kind == Kind::zero || magnitude(n) < -13)
    return encode({Kind::finite, false, 0, 1}, f, rules);
  return wave(n, true, f, rules);
}

// (e^2x - 1) / (e^2x + 1); below 2^-10 the first two terms of its series.
uint64_t tanh(uint64_t a, const Format& f, const Rules& rules) {
  Number n = decode(a, f, rules.ftz);
  if (n.kind == Kind::nan || n.kind == Kind::zero) return encode(n, f, rules);
  const bool negative = n.negative;
  if (n.kind == Kind::infinite || magnitude(n) >= 6)
    return encode({Kind::finite, negative, 0, 1}, f, rules);
  const uint64_t x = encode(n, f64);
  if (magnitude(n) < -10) {
    const uint64_t third = 0xBFD5555555555555;  // -1/3
    const uint64_t cube = mul(mul(x, x, f64), x, f64);
    return convert(fma(third, cube, x, f64), f64, f, rules);
  }
  n.negative = false;
  const uint64_t two_log2_e = 0x40071547652B82FE;
  const Number v = decode(mul(encode(n, f64), two_log2_e, f64), f64);
  const uint64_t e = encode(power(fixed(v)), f64), unit = 0x3FF0000000000000;
  const uint64_t t = div(add(e, unit | f64.sign_bit(), f64), add(e, unit, f64), f64);
  return convert(t | (negative ? f64.sign_bit() : 0), f64, f, rules);
}

}  // namespace emu::soft
