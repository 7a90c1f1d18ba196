// SPDX-License-Identifier: MIT
// cvt (PTX ISA 9.7.9.21) and cvta (9.7.9.20).
#include <algorithm>
#include <limits>

#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/nan.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

using soft::Format;
using soft::Rules;

// A destination register may be wider than the type: integers are extended by their own sign.
uint64_t declared_mask(const Operand& op) {
  uint32_t bits = ptx::bits_of(op.declared);
  return bits == 0 || bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

// d = F(a) with the destination's width respected.
template <class F>
Step convert_lanes(Warp& w, const Instr& in, uint32_t active, F f) {
  Warp::Row scratch;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, scratch, unknown);
  uint64_t mask = declared_mask(in.ops[0]);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = f(a[i]) & mask; });
  return Step::next;
}

template <class D, class S, bool Sat>
Step int_to_int(Warp& w, const Instr& in, uint32_t active) {
  return convert_lanes(w, in, active, [](uint64_t a) {
    S value = S(a);
    if constexpr (Sat) {
      int128 least = std::numeric_limits<D>::min(), most = std::numeric_limits<D>::max();
      return uint64_t(D(std::clamp<int128>(value, least, most)));
    }
    return uint64_t(D(value));
  });
}

Exec bind_int_to_int(const Instr& in) {
  bool sat = in.has(Mod::sat);
  return by_integer(in.type(0), [&]<class D>() -> Exec {
    return by_integer(in.type(1), [&]<class S>() -> Exec {
      return sat ? int_to_int<D, S, true> : int_to_int<D, S, false>;
    });
  });
}

constexpr uint32_t width_of(const Format& f) { return 1u + f.exponent_bits + f.mantissa_bits; }
// Elements of 4 bits lie side by side, those of 6 in a byte each.
constexpr uint32_t stride_of(const Format& f) { return width_of(f) == 6 ? 8 : width_of(f); }
template <const Format& F>
constexpr uint64_t code_mask = width_of(F) == 64 ? ~0ull : (1ull << width_of(F)) - 1;

template <class S, const Format& To>
Step int_to_float(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [rules](uint64_t a) -> uint64_t {
    if constexpr (std::is_signed_v<S>)
      return soft::encode(soft::from_integer(S(a)), To, rules);
    else
      return soft::encode(soft::from_unsigned(S(a)), To, rules);
  });
}

template <class D, const Format& From>
Step float_to_int(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [rules](uint64_t a) {
    soft::Number n = soft::decode(a & code_mask<From>, From, rules.ftz && &From == &soft::f32);
    // As a 32-bit integer, signed or not, an f64 NaN gives 0x80000000 (measured: H200).
    if (&From == &soft::f64 && sizeof(D) == 4 && n.kind == soft::Number::Kind::nan)
      return uint64_t(D(1u << 31));
    return uint64_t(D(soft::to_integer(n, sizeof(D) * 8, std::is_signed_v<D>, rules.round)));
  });
}

// A NaN that is converted between f32 and f64 becomes quiet and keeps the other mantissa bits that
// both formats have (measured: H200).
bool is_nan_f32(uint64_t code) { return (code & 0x7FFFFFFF) > soft::f32.infinity(); }
uint64_t f64_from_nan(uint64_t code) {
  return (code >> 31) << 63 | soft::f64.infinity() | f64_quiet | (code & 0x7FFFFF) << 29;
}
uint64_t f32_from_nan(uint64_t code) {
  return (code >> 63) << 31 | 0x7FC00000 | (code >> 29 & 0x7FFFFF);
}

// .ftz concerns f32 only: a subnormal f16 is a normal f32, and a subnormal f16 result is kept.
template <const Format& From, const Format& To>
uint64_t convert_value(uint64_t code, Rules rules) {
  if constexpr (&From == &soft::bf16 && &To == &soft::f32) return code << 16;  // NaNs, too
  if constexpr (&From == &soft::f32 && &To == &soft::f64)
    if (is_nan_f32(code)) return f64_from_nan(code);
  if constexpr (&From == &soft::f64 && &To == &soft::f32)
    if (is_nan_f64(code) && !rules.sat) return f32_from_nan(code);
  bool flush_source = rules.ftz && &From == &soft::f32;
  rules.ftz = rules.ftz && &To == &soft::f32;
  return soft::encode(soft::decode(code, From, flush_source), To, rules);
}

template <const Format& From, const Format& To>
Step float_to_float(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [rules](uint64_t a) -> uint64_t {
    a &= code_mask<From>;
    return convert_value<From, To>(a, rules);
  });
}

template <const Format& F>
Step round_to_integral(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [rules](uint64_t a) -> uint64_t {
    return with_payload(soft::to_integral(a & code_mask<F>, F, rules), F, {a & code_mask<F>});
  });
}

// d = {a, b}: the first source is the high part, the second the low one.
template <const Format& To>
Step pack_f32(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) {
    d[i] = convert_value<soft::f32, To>(uint32_t(a[i]), rules) << stride_of(To) |
           convert_value<soft::f32, To>(uint32_t(b[i]), rules);
  });
  return Step::next;
}

template <const Format& From, const Format& To>
Step convert_pair(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [rules](uint64_t a) -> uint64_t {
    uint32_t mask = (1u << width_of(From)) - 1;
    return convert_value<From, To>(uint32_t(a) >> stride_of(From) & mask, rules) << stride_of(To) |
           convert_value<From, To>(uint32_t(a) & mask, rules);
  });
}

Step pack_ue8m0(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  soft::Round round = rounding_of(in);
  bool satfinite = in.has(Mod::satfinite);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) {
    d[i] = soft::encode_ue8m0(uint32_t(a[i]), soft::f32, round, satfinite) << 8 |
           soft::encode_ue8m0(uint32_t(b[i]), soft::f32, round, satfinite);
  });
  return Step::next;
}

Step narrow_ue8m0(Warp& w, const Instr& in, uint32_t active) {
  const soft::Round round = rounding_of(in);
  const bool satfinite = in.has(Mod::satfinite);
  return convert_lanes(w, in, active, [=](uint64_t a) -> uint64_t {
    return soft::encode_ue8m0(a >> 16 & 0xFFFF, soft::bf16, round, satfinite) << 8 |
           soft::encode_ue8m0(a & 0xFFFF, soft::bf16, round, satfinite);
  });
}

// tf32 is f32 with 10 bits of mantissa; the 13 below are zero.
constexpr Format tf32_format{8, 10, true, true};
constexpr uint32_t tf32_dropped = 13;

uint64_t to_tf32(uint64_t code, const Rules& rules) {
  return soft::encode(soft::decode(code, soft::f32), tf32_format, rules) << tf32_dropped;
}

Step round_to_tf32(Warp& w, const Instr& in, uint32_t active) {
  const Rules rules = rules_of(in);
  return convert_lanes(w, in, active, [=](uint64_t a) { return to_tf32(uint32_t(a), rules); });
}

// To the nearest, ties away from zero: half of the last place is added to the magnitude. A NaN is
// truncated. With .satfinite one unit of the last place is then subtracted: hardware turns infinity
// into the largest finite number by this subtraction, and applies it to a NaN as well (measured:
// H200).
Step round_away_to_tf32(Warp& w, const Instr& in, uint32_t active) {
  Rules rules = rules_of(in);
  rules.round = soft::Round::zero;
  return convert_lanes(w, in, active, [=](uint64_t a) -> uint64_t {
    const uint64_t magnitude = a & (soft::f32.sign_bit() - 1);
    constexpr uint64_t last = 1ull << tf32_dropped;
    if (magnitude > soft::f32.infinity()) return (a & ~(last - 1)) - (rules.satfinite ? last : 0);
    if (magnitude < soft::f32.infinity()) a = (a + last / 2) & ~(last - 1);
    return to_tf32(uint32_t(a), rules);
  });
}

Step unpack_ue8m0(Warp& w, const Instr& in, uint32_t active) {
  return convert_lanes(w, in, active, [](uint64_t a) -> uint64_t {
    return soft::encode(soft::decode_ue8m0(a >> 8 & 0xFF), soft::bf16) << 16 |
           soft::encode(soft::decode_ue8m0(a & 0xFF), soft::bf16);
  });
}

bool is_integer(Type t) { return ptx::class_of(t) == 'u' || ptx::class_of(t) == 's'; }

Exec bind_int_to_float(const Instr& in) {
  return by_integer(in.type(1), [&]<class S>() -> Exec {
    switch (in.type(0)) {
      case Type::f64: return int_to_float<S, soft::f64>;
      case Type::f32: return int_to_float<S, soft::f32>;
      case Type::f16: return int_to_float<S, soft::f16>;
      default: return nullptr;
    }
  });
}

Exec bind_float_to_int(const Instr& in) {
  return by_integer(in.type(0), [&]<class D>() -> Exec {
    switch (in.type(1)) {
      case Type::f64: return float_to_int<D, soft::f64>;
      case Type::f32: return float_to_int<D, soft::f32>;
      case Type::f16: return float_to_int<D, soft::f16>;
      case Type::bf16: return float_to_int<D, soft::bf16>;
      default: return nullptr;
    }
  });
}

struct Pair {
  Type to, from;
  Exec exec;
};
constexpr Pair pairs[] = {
    {Type::f64, Type::f32, float_to_float<soft::f32, soft::f64>},
    {Type::f32, Type::f64, float_to_float<soft::f64, soft::f32>},
    {Type::f64, Type::f16, float_to_float<soft::f16, soft::f64>},
    {Type::f16, Type::f64, float_to_float<soft::f64, soft::f16>},
    {Type::f32, Type::f16, float_to_float<soft::f16, soft::f32>},
    {Type::f32, Type::bf16, float_to_float<soft::bf16, soft::f32>},
    {Type::f16, Type::f32, float_to_float<soft::f32, soft::f16>},
    {Type::bf16, Type::f32, float_to_float<soft::f32, soft::bf16>},
    {Type::f16x2, Type::f32, pack_f32<soft::f16>},
    {Type::bf16x2, Type::f32, pack_f32<soft::bf16>},
    {Type::e4m3x2, Type::f32, pack_f32<soft::e4m3>},
    {Type::e5m2x2, Type::f32, pack_f32<soft::e5m2>},
    {Type::e2m1x2, Type::f32, pack_f32<soft::e2m1>},
    {Type::e2m3x2, Type::f32, pack_f32<soft::e2m3>},
    {Type::e3m2x2, Type::f32, pack_f32<soft::e3m2>},
    {Type::e2m1x2, Type::f16x2, convert_pair<soft::f16, soft::e2m1>},
    {Type::f16x2, Type::e2m3x2, convert_pair<soft::e2m3, soft::f16>},
    {Type::f16x2, Type::e3m2x2, convert_pair<soft::e3m2, soft::f16>},
    {Type::ue8m0x2, Type::f32, pack_ue8m0},
    {Type::ue8m0x2, Type::bf16x2, narrow_ue8m0},
    {Type::e4m3x2, Type::f16x2, convert_pair<soft::f16, soft::e4m3>},
    {Type::e5m2x2, Type::f16x2, convert_pair<soft::f16, soft::e5m2>},
    {Type::f16x2, Type::e4m3x2, convert_pair<soft::e4m3, soft::f16>},
    {Type::f16x2, Type::e5m2x2, convert_pair<soft::e5m2, soft::f16>},
    {Type::f16x2, Type::e2m1x2, convert_pair<soft::e2m1, soft::f16>},
    {Type::bf16x2, Type::ue8m0x2, unpack_ue8m0},
    {Type::e2m3x2, Type::f16x2, convert_pair<soft::f16, soft::e2m3>},
    {Type::e3m2x2, Type::f16x2, convert_pair<soft::f16, soft::e3m2>},
    {Type::e4m3x2, Type::bf16x2, convert_pair<soft::bf16, soft::e4m3>},
    {Type::e5m2x2, Type::bf16x2, convert_pair<soft::bf16, soft::e5m2>},
    {Type::e2m3x2, Type::bf16x2, convert_pair<soft::bf16, soft::e2m3>},
    {Type::e3m2x2, Type::bf16x2, convert_pair<soft::bf16, soft::e3m2>},
    {Type::e2m1x2, Type::bf16x2, convert_pair<soft::bf16, soft::e2m1>},
    {Type::bf16x2, Type::e4m3x2, convert_pair<soft::e4m3, soft::bf16>},
    {Type::bf16x2, Type::e5m2x2, convert_pair<soft::e5m2, soft::bf16>},
    {Type::bf16x2, Type::e2m3x2, convert_pair<soft::e2m3, soft::bf16>},
    {Type::bf16x2, Type::e3m2x2, convert_pair<soft::e3m2, soft::bf16>},
    {Type::bf16x2, Type::e2m1x2, convert_pair<soft::e2m1, soft::bf16>},
};

bool rounds_to_integral(const Instr& in) {
  return in.has(Mod::rni) || in.has(Mod::rzi) || in.has(Mod::rmi) || in.has(Mod::rpi);
}

Space cvta_space(const Instr& in) {
  if (in.has(Mod::shared) || in.has(Mod::shared_cta)) return Space::shared_cta;
  if (in.has(Mod::shared_cluster)) return Space::shared_cluster;
  if (in.has(Mod::local)) return Space::local;
  return in.has(Mod::param) ? Space::param : Space::global;  // .const lies in global memory
}

template <Space S>
Step to_generic(Warp& w, const Instr& in, uint32_t active) {
  return convert_lanes(w, in, active, [](uint64_t a) { return address::to_generic(S, a); });
}
template <Space S>
Step from_generic(Warp& w, const Instr& in, uint32_t active) {
  return convert_lanes(w, in, active, [](uint64_t a) { return address::from_generic(S, a); });
}

bool is_constant(uint64_t a, const ptx::Module& module) {
  return std::any_of(module.constants.begin(), module.constants.end(), [&](uint32_t i) {
    return a - module.variables[i].address < module.variables[i].bytes;
  });
}

// .shared is the CTA's own.
bool lies_in(uint64_t a, const Warp& w, const Instr& in) {
  if (in.has(Mod::const_)) return is_constant(a, *w.cta.cluster.launch.module);
  const Space space = address::space_of(a);
  if (in.has(Mod::global)) return space == Space::global;
  if (in.has(Mod::local)) return space == Space::local;
  if (in.has(Mod::param) || in.has(Mod::param_entry)) return space == Space::param;
  if (space != Space::shared_cluster) return false;
  return in.has(Mod::shared_cluster) || uint32_t(a) >> SharedMemory::rank_shift == w.cta.rank;
}

Step is_space(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row scratch;
  const uint64_t* a = w.source(in.ops[1], active, scratch);
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [&](uint32_t i) { d[i] = lies_in(a[i], w, in); });
  return Step::next;
}

// d is c:a:b. a and b, saturated to the type, fill the low bits; c is shifted left by their width.
Step pack(Warp& w, const Instr& in, uint32_t active) {
  const uint32_t bits = ptx::bits_of(in.type());
  const bool is_signed = ptx::class_of(in.type()) == 's';
  const int64_t least = is_signed ? -(1ll << (bits - 1)) : 0,
                most = (1ll << (bits - is_signed)) - 1;
  Warp::Row sa, sb, sc;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  const uint64_t* c = in.ops.size() > 3 ? w.operand(in.ops[3], active, sc, unknown) : nullptr;
  const auto saturated = [=](uint64_t v) {
    return uint32_t(std::clamp<int64_t>(int32_t(v), least, most)) & ((1u << bits) - 1);
  };
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [&](uint32_t i) {
    const uint64_t behind = c ? c[i] << 2 * bits : 0;
    d[i] = uint32_t(behind | saturated(a[i]) << bits | saturated(b[i]));
  });
  return Step::next;
}

// No module that loads has a texture, sampler or surface.
Step is_opaque(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row scratch;
  w.source(in.ops[1], active, scratch);
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [&](uint32_t i) { d[i] = 0; });
  return Step::next;
}

}  // namespace

Exec bind_isspacep(const Instr&, std::string&) { return is_space; }
Exec bind_istypep(const Instr&, std::string&) { return is_opaque; }

Exec bind_cvt(const Instr& in, std::string& why) {
  if (in.has(Mod::pack)) return pack;
  Type to = in.type(0), from = in.type(1);
  if (is_integer(to) && is_integer(from)) return checked(bind_int_to_int(in), why);
  if (is_integer(from)) return checked(bind_int_to_float(in), why);
  if (is_integer(to)) return checked(bind_float_to_int(in), why);
  if (to == Type::f32 && from == Type::f32)
    return rounds_to_integral(in) ? round_to_integral<soft::f32>
                                  : float_to_float<soft::f32, soft::f32>;
  if (to == Type::f64 && from == Type::f64) return round_to_integral<soft::f64>;
  if (to == Type::f16 && from == Type::f16) return round_to_integral<soft::f16>;
  if (to == Type::tf32) return in.has(Mod::rna) ? round_away_to_tf32 : round_to_tf32;
  for (const Pair& p : pairs)
    if (p.to == to && p.from == from) return p.exec;
  return refuse(why, "the machine does not convert between these types");
}

Exec bind_cvta(const Instr& in, std::string&) {
  bool to = in.has(Mod::to);
  switch (cvta_space(in)) {
    case Space::shared_cta:
    case Space::shared_cluster:
      return to ? from_generic<Space::shared_cta> : to_generic<Space::shared_cta>;
    case Space::local: return to ? from_generic<Space::local> : to_generic<Space::local>;
    case Space::param: return to ? from_generic<Space::param> : to_generic<Space::param>;
    default: return to ? from_generic<Space::global> : to_generic<Space::global>;
  }
}

}  // namespace emu::ops
