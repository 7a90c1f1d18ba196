// SPDX-License-Identifier: MIT
// Floating-point arithmetic: f64, f32, f16, bf16 and their packed pairs (PTX ISA 9.7.3, 9.7.4).
#include "tools/emulator/arithmetic/host_float.h"
#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/mixed.h"
#include "tools/emulator/op/nan.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

using soft::Format;
using soft::Rules;
using U = uint64_t;

U add_of(U a, U b, U, const Format& f, const Rules& r, const Instr&) {
  return with_payload(soft::add(a, b, f, r), f, {a, b});
}
U sub_of(U a, U b, U, const Format& f, const Rules& r, const Instr&) {
  return with_payload(soft::add(a, b ^ f.sign_bit(), f, r), f, {a, b});
}
U mul_of(U a, U b, U, const Format& f, const Rules& r, const Instr&) {
  return with_payload(soft::mul(a, b, f, r), f, {a, b});
}
U fma_of(U a, U b, U c, const Format& f, const Rules& r, const Instr&) {
  return with_payload(soft::fma(a, b, c, f, r), f, {a, b, c});
}
U min_of(U a, U b, U, const Format& f, const Rules& r, const Instr& in) {
  return with_payload(soft::minimum(a, b, f, r.ftz, in.has(Mod::NaN)), f, {b, a});
}
U max_of(U a, U b, U, const Format& f, const Rules& r, const Instr& in) {
  return with_payload(soft::maximum(a, b, f, r.ftz, in.has(Mod::NaN)), f, {a, b});
}
// For three operands: with .abs their magnitudes.
U min3_of(U a, U b, U c, const Format& f, const Rules& r, const Instr& in) {
  const U keep = in.has(Mod::abs) ? ~f.sign_bit() : ~U(0);
  const bool nan = in.has(Mod::NaN);
  return soft::minimum(soft::minimum(a & keep, b & keep, f, r.ftz, nan), c & keep, f, r.ftz, nan);
}
U max3_of(U a, U b, U c, const Format& f, const Rules& r, const Instr& in) {
  const U keep = in.has(Mod::abs) ? ~f.sign_bit() : ~U(0);
  const bool nan = in.has(Mod::NaN);
  return soft::maximum(soft::maximum(a & keep, b & keep, f, r.ftz, nan), c & keep, f, r.ftz, nan);
}
U abs_of(U a, U, U, const Format& f, const Rules& r, const Instr&) {
  return (r.ftz ? soft::flush(a, f) : a) & ~f.sign_bit();
}
U neg_of(U a, U, U, const Format& f, const Rules& r, const Instr&) {
  return (r.ftz ? soft::flush(a, f) : a) ^ f.sign_bit();
}

// The host function (arithmetic/host_float.h) with the result of F for rounding to nearest without
// .ftz and .sat. It computes all lanes at once and returns the lanes whose result is a NaN.
template <const soft::Format& Fmt, auto F>
constexpr auto host_form() {
  if constexpr (Fmt.mantissa_bits == soft::f32.mantissa_bits)
    return F == add_of || F == sub_of ? host::add_f32 : F == mul_of ? host::mul_f32 : nullptr;
  else if constexpr (Fmt.mantissa_bits == soft::f64.mantissa_bits)
    return F == add_of || F == sub_of ? host::add_f64 : F == mul_of ? host::mul_f64 : nullptr;
  else
    return host::Binary{nullptr};
}

template <const soft::Format& Fmt, auto F>
uint32_t by_host(const uint64_t* const* src, uint64_t* result) {
  if constexpr (F == fma_of) {
    constexpr bool single = Fmt.mantissa_bits == soft::f32.mantissa_bits;
    return (single ? host::fma_f32 : host::fma_f64)(src[0], src[1], src[2], result);
  } else if constexpr (F == sub_of) {
    Warp::Row negated;
    for (int lane = 0; lane < 32; ++lane) negated[lane] = src[1][lane] ^ Fmt.sign_bit();
    return host_form<Fmt, F>()(src[0], negated, result);
  } else {
    return host_form<Fmt, F>()(src[0], src[1], result);
  }
}

template <const soft::Format& Fmt, int Parts, auto F>
constexpr bool host_has() {
  const bool format =
      Fmt.mantissa_bits == soft::f32.mantissa_bits || Fmt.mantissa_bits == soft::f64.mantissa_bits;
  return Parts == 1 && format && (F == fma_of || host_form<Fmt, F>() != nullptr);
}

bool host_rounds_so(const soft::Rules& r) { return rounds_to_nearest(r) && host::is_ieee(); }

// One or two values of a format in a register: F(a, b, c) runs on each of them.
template <const soft::Format& Fmt, int Parts, auto F, int Operands>
Step arithmetic(Warp& w, const Instr& in, uint32_t active) {
  constexpr uint32_t bits = 1 + Fmt.exponent_bits + Fmt.mantissa_bits;
  constexpr uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  Warp::Row scratch[3], result;
  Warp::Unknown unknown;
  const uint64_t* src[3] = {};
  for (int i = 0; i < Operands; ++i)
    src[i] = w.operand(in.ops[size_t(i) + 1], active, scratch[i], unknown);
  for (int i = Operands; i < 3; ++i) src[i] = src[0];
  const soft::Rules rules = rules_of(in);
  uint32_t left = active;  // for softfloat
  if constexpr (host_has<Fmt, Parts, F>())
    if (host_rounds_so(rules)) left &= by_host<Fmt, F>(src, result);
  for_lanes(left, [&](uint32_t lane) {
    uint64_t r = 0;
    for (uint32_t p = 0; p < Parts; ++p) {
      auto part = [&](int i) { return src[i][lane] >> p * bits & mask; };
      r |= F(part(0), part(1), part(2), Fmt, rules, in) << p * bits;
    }
    result[lane] = r;
  });
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [&](uint32_t lane) { d[lane] = result[lane]; });
  return Step::next;
}

template <auto F, int Operands>
Exec by_float(const Instr& in) {
  switch (in.type()) {
    case Type::f64: return arithmetic<soft::f64, 1, F, Operands>;
    case Type::f32: return arithmetic<soft::f32, 1, F, Operands>;
    case Type::f32x2: return arithmetic<soft::f32, 2, F, Operands>;
    case Type::f16: return arithmetic<soft::f16, 1, F, Operands>;
    case Type::f16x2: return arithmetic<soft::f16, 2, F, Operands>;
    case Type::bf16: return arithmetic<soft::bf16, 1, F, Operands>;
    case Type::bf16x2: return arithmetic<soft::bf16, 2, F, Operands>;
    default: return nullptr;
  }
}

// The tests of setp by the outcome of the comparison, a bit per soft::Order: less, equal, greater,
// unordered. The u-forms are true for NaN as well (PTX ISA 9.3.1).
struct Test {
  Mod mod;
  uint8_t outcomes;
};
constexpr Test tests[] = {
    {Mod::eq, 0b0010},  {Mod::ne, 0b0101},  {Mod::lt, 0b0001},  {Mod::le, 0b0011},
    {Mod::gt, 0b0100},  {Mod::ge, 0b0110},  {Mod::equ, 0b1010}, {Mod::neu, 0b1101},
    {Mod::ltu, 0b1001}, {Mod::leu, 0b1011}, {Mod::gtu, 0b1100}, {Mod::geu, 0b1110},
    {Mod::num, 0b0111}, {Mod::nan, 0b1000}, {Mod::lo, 0b0001},  {Mod::ls, 0b0011},
    {Mod::hi, 0b0100},  {Mod::hs, 0b0110},
};

template <const soft::Format& Fmt, class Code>
Step compare(Warp& w, const Instr& in, uint32_t active) {
  size_t at = setp_sources(in);
  Warp::Row sa, sb;
  Predicate p;
  const uint64_t* a = w.operand(in.ops[at], active, sa, p.unknown);
  const uint64_t* b = w.operand(in.ops[at + 1], active, sb, p.unknown);
  const uint32_t outcomes = outcomes_of(in);
  bool ftz = in.has(Mod::ftz);
  for_lanes(active, [&](uint32_t i) {
    p.yes |= (outcomes >> int(soft::compare(Code(a[i]), Code(b[i]), Fmt, ftz)) & 1) << i;
  });
  set_predicates(w, in, active, p);
  return Step::next;
}

// setp.f16x2 p|q: p tests the low halves, q the high ones.
Step compare_pairs(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[2], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[3], active, sb, unknown);
  uint32_t outcomes = outcomes_of(in), result[2] = {};
  bool ftz = in.has(Mod::ftz);
  for_lanes(active, [&](uint32_t i) {
    for (int h = 0; h < 2; ++h)
      result[h] |= (outcomes >> int(soft::compare(a[i] >> 16 * h & 0xFFFF, b[i] >> 16 * h & 0xFFFF,
                                                  soft::f16, ftz)) &
                    1)
                   << i;
  });
  for (size_t h = 0; h < 2; ++h) set_predicate(w, in.ops[h], active, {result[h], unknown});
  return Step::next;
}

}  // namespace

uint32_t outcomes_of(const Instr& in) {
  for (const Test& t : tests)
    if (in.has(t.mod)) return t.outcomes;
  return 0;
}

Exec float_add(const Instr& in) { return is_mixed(in) ? mixed_add(in) : by_float<add_of, 2>(in); }
Exec float_sub(const Instr& in) { return is_mixed(in) ? mixed_sub(in) : by_float<sub_of, 2>(in); }
Exec float_mul(const Instr& in) { return by_float<mul_of, 2>(in); }
Exec float_min(const Instr& in) {
  return in.ops.size() == 4 ? by_float<min3_of, 3>(in) : by_float<min_of, 2>(in);
}
Exec float_max(const Instr& in) {
  return in.ops.size() == 4 ? by_float<max3_of, 3>(in) : by_float<max_of, 2>(in);
}
Exec float_abs(const Instr& in) { return by_float<abs_of, 1>(in); }
Exec float_neg(const Instr& in) { return by_float<neg_of, 1>(in); }

Exec bind_fma(const Instr& in, std::string& why) {
  return is_mixed(in) ? mixed_fma(in) : checked(by_float<fma_of, 3>(in), why);
}

Exec float_setp(const Instr& in) {
  switch (in.type()) {
    case Type::f64: return compare<soft::f64, uint64_t>;
    case Type::f32: return compare<soft::f32, uint32_t>;
    case Type::f16: return compare<soft::f16, uint16_t>;
    case Type::bf16: return compare<soft::bf16, uint16_t>;
    case Type::f16x2: return compare_pairs;
    default: return nullptr;
  }
}

}  // namespace emu::ops
