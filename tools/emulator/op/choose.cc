// SPDX-License-Identifier: MIT
// Instructions that choose or classify: slct, testp, cnot, szext (PTX ISA 9.7.1, 9.7.3, 9.7.7,
// 9.7.8).
#include <algorithm>

#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/predicate.h"

namespace emu::ops {

namespace {

// a where c >= 0, else b. A NaN is not, -0 is.
template <auto NotNegative>
Step choose(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb, sc;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  const uint64_t* c = w.operand(in.ops[3], active, sc, unknown);
  const uint32_t bits = ptx::bits_of(in.type());
  const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = (NotNegative(uint32_t(c[i])) ? a[i] : b[i]) & mask; });
  return Step::next;
}

constexpr uint32_t f32_sign = 1u << 31, f32_infinity = 0x7F800000;
bool not_negative_f32(uint32_t c) {
  const uint32_t magnitude = c & ~f32_sign;
  return magnitude <= f32_infinity && (!(c & f32_sign) || magnitude == 0);
}
// A subnormal counts as zero of its sign.
bool not_negative_ftz(uint32_t c) {
  return not_negative_f32((c & f32_infinity) == 0 ? c & f32_sign : c);
}

template <const soft::Format& F>
bool is(const Instr& in, uint64_t code) {
  const uint64_t magnitude = code & (F.sign_bit() - 1);
  const uint64_t exponent = magnitude & F.infinity();
  if (in.has(Mod::finite)) return exponent != F.infinity();
  if (in.has(Mod::infinite)) return magnitude == F.infinity();
  if (in.has(Mod::number)) return magnitude <= F.infinity();
  if (in.has(Mod::notanumber)) return magnitude > F.infinity();
  // Zero counts as normal (PTX ISA, testp).
  if (in.has(Mod::normal)) return magnitude == 0 || (exponent != 0 && exponent != F.infinity());
  return exponent == 0 && magnitude != 0;  // .subnormal
}

template <const soft::Format& F>
Step classify(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa;
  Predicate p;
  const uint64_t* a = w.operand(in.ops[1], active, sa, p.unknown);
  for_lanes(active, [&](uint32_t i) { p.yes |= uint32_t(is<F>(in, a[i])) << i; });
  set_predicate(w, in.ops[0], active, p);
  return Step::next;
}

// The low `n` bits of a, extended by the highest of them or by zeros. If `n` is 0, the result is 0.
template <bool Signed, bool Clamp>
uint32_t extend(uint32_t a, uint32_t n) {
  n = Clamp ? std::min(n, 32u) : n & 31;
  if (n == 0) return 0;
  const uint32_t up = a << (32 - n);
  return Signed ? uint32_t(int32_t(up) >> (32 - n)) : up >> (32 - n);
}

}  // namespace

Exec bind_slct(const Instr& in, std::string&) {
  if (in.type(1) == Type::s32) return choose<[](uint32_t c) { return int32_t(c) >= 0; }>;
  return in.has(Mod::ftz) ? choose<not_negative_ftz> : choose<not_negative_f32>;
}

Exec bind_testp(const Instr& in, std::string&) {
  return in.type() == Type::f64 ? classify<soft::f64> : classify<soft::f32>;
}

Exec bind_cnot(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec { return map1<T, T, [](T a) { return T(a == 0); }>; }),
      why);
}

Exec bind_szext(const Instr& in, std::string&) {
  using U = uint32_t;
  const bool is_signed = in.type() == Type::s32;
  if (in.has(Mod::clamp))
    return is_signed ? map2<U, U, U, extend<true, true>> : map2<U, U, U, extend<false, true>>;
  return is_signed ? map2<U, U, U, extend<true, false>> : map2<U, U, U, extend<false, false>>;
}

}  // namespace emu::ops
