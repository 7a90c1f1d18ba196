// SPDX-License-Identifier: MIT
// Division, reciprocals, roots and the approximate functions (PTX ISA 9.7.3, 9.7.4). softmath.h
// says which bits an .approx has.
#include "tools/emulator/arithmetic/host_float.h"
#include "tools/emulator/arithmetic/softmath.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/nan.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

using Unary = uint64_t (*)(uint64_t a, const soft::Format& f, const soft::Rules& rules);

// The host's function of whole rows that gives what F does; nullptr: it has none.
template <const soft::Format& Fmt, int Parts, Unary F>
constexpr host::Unary host_form() {
  if (F != soft::sqrt || Parts != 1) return nullptr;
  if (Fmt.mantissa_bits == soft::f32.mantissa_bits) return host::sqrt_f32;
  return Fmt.mantissa_bits == soft::f64.mantissa_bits ? host::sqrt_f64 : nullptr;
}

template <const soft::Format& Fmt, int Parts, Unary F>
Step unary(Warp& w, const Instr& in, uint32_t active) {
  constexpr uint32_t bits = 1 + Fmt.exponent_bits + Fmt.mantissa_bits;
  constexpr uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  const soft::Rules rules = rules_of(in);
  Warp::Row scratch;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, scratch, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  uint32_t left = active;  // for softmath
  Warp::Row by_host;
  if constexpr (host_form<Fmt, Parts, F>() != nullptr)
    if (rounds_to_nearest(rules) && host::is_ieee()) left &= host_form<Fmt, Parts, F>()(a, by_host);
  for_lanes(left, [&](uint32_t i) {
    uint64_t r = 0;
    for (uint32_t p = 0; p < Parts; ++p) {
      const uint64_t part = a[i] >> p * bits & mask;
      r |= with_payload(F(part, Fmt, rules), Fmt, {part}) << p * bits;
    }
    d[i] = r;
  });
  for_lanes(active & ~left, [&](uint32_t i) { d[i] = by_host[i]; });
  return Step::next;
}

template <Unary F>
Exec by_type(const Instr& in, std::string& why) {
  switch (in.type()) {
    case Type::f64: return unary<soft::f64, 1, F>;
    case Type::f32: return unary<soft::f32, 1, F>;
    case Type::f16: return unary<soft::f16, 1, F>;
    case Type::f16x2: return unary<soft::f16, 2, F>;
    case Type::bf16: return unary<soft::bf16, 1, F>;
    case Type::bf16x2: return unary<soft::bf16, 2, F>;
    default: return checked(nullptr, why);
  }
}

uint64_t reciprocal(uint64_t a, const soft::Format& f, const soft::Rules& rules) {
  return soft::div(uint64_t(f.bias()) << f.mantissa_bits, a, f, rules);
}

// The coarse approximations of f64: they read only the upper half of the operand and write only the
// upper half of the result.
template <Unary F>
Step gross(Warp& w, const Instr& in, uint32_t active) {
  constexpr uint64_t upper = ~0ull << 32;
  Warp::Row scratch;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, scratch, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  soft::Rules rules;
  rules.ftz = true;
  for_lanes(active, [&](uint32_t i) { d[i] = F(a[i] & upper, soft::f64, rules) & upper; });
  return Step::next;
}

// Beyond 2^126 the reciprocal of the divisor is flushed to zero in the fast division. The quotient
// is zero, or NaN if the dividend is infinite.
uint64_t fast_quotient(uint64_t a, uint64_t b, const soft::Rules& rules) {
  const uint32_t exponent = uint32_t(b) >> 23 & 0xFF;
  if (exponent < 253 || exponent == 255) return soft::div(a, b, soft::f32, rules);
  if (exponent == 253 && !(b & 0x7FFFFF)) return soft::div(a, b, soft::f32, rules);
  return soft::mul(a, b & 0x80000000, soft::f32, rules);
}

template <const soft::Format& Fmt, bool Fast>
Step divide(Warp& w, const Instr& in, uint32_t active) {
  const soft::Rules rules = rules_of(in);
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [&](uint32_t i) {
    d[i] = Fast ? fast_quotient(a[i], b[i], rules)
                : with_payload(soft::div(a[i], b[i], Fmt, rules), Fmt, {a[i], b[i]});
  });
  return Step::next;
}

}  // namespace

Exec float_div(const Instr& in) {
  if (in.type() == Type::f64) return divide<soft::f64, false>;
  return in.has(Mod::approx) ? divide<soft::f32, true> : divide<soft::f32, false>;
}

static bool is_gross(const Instr& in) { return in.type() == Type::f64 && in.has(Mod::ftz); }

Exec bind_rcp(const Instr& in, std::string& why) {
  return is_gross(in) ? gross<reciprocal> : by_type<reciprocal>(in, why);
}
Exec bind_sqrt(const Instr& in, std::string& why) { return by_type<soft::sqrt>(in, why); }
Exec bind_rsqrt(const Instr& in, std::string& why) {
  return is_gross(in) ? gross<soft::rsqrt> : by_type<soft::rsqrt>(in, why);
}
Exec bind_ex2(const Instr& in, std::string& why) { return by_type<soft::exp2>(in, why); }
Exec bind_lg2(const Instr& in, std::string& why) { return by_type<soft::log2>(in, why); }
Exec bind_sin(const Instr& in, std::string& why) { return by_type<soft::sin>(in, why); }
Exec bind_cos(const Instr& in, std::string& why) { return by_type<soft::cos>(in, why); }
Exec bind_tanh(const Instr& in, std::string& why) { return by_type<soft::tanh>(in, why); }

}  // namespace emu::ops
