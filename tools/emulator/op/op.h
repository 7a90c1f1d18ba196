// SPDX-License-Identifier: MIT
// What instruction semantics are written with: a function of one lane's values becomes an Exec.
#pragma once

#include <string>
#include <type_traits>

#include "tools/emulator/machine/machine.h"

namespace emu::ops {

using ptx::Exec;
using ptx::Instr;
using ptx::Mod;
using ptx::Operand;
using ptx::Space;
using ptx::Step;
using ptx::Type;

template <class T>
using unsigned_t = std::make_unsigned_t<T>;

template <class T>
constexpr uint32_t width = sizeof(T) * 8;

// A value as register bits: zero above its type's width.
template <class T>
constexpr uint64_t register_bits(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value;
  else
    return unsigned_t<T>(value);
}

// d = F(a), F(a, b), F(a, b, c); operands are cut to the width of F's parameter types.
template <class D, class A, auto F>
Step map1(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = register_bits<D>(D(F(A(a[i])))); });
  return Step::next;
}

template <class D, class A, class B, auto F>
Step map2(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = register_bits<D>(D(F(A(a[i]), B(b[i])))); });
  return Step::next;
}

template <class D, class A, class B, class C, auto F>
Step map3(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb, sc;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  const uint64_t* c = w.operand(in.ops[3], active, sc, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = register_bits<D>(D(F(A(a[i]), B(b[i]), C(c[i])))); });
  return Step::next;
}

// make<T>() for the host integer that is a PTX integer or untyped bits; nullptr for other types.
template <class Make>
Exec by_integer(Type type, Make make) {
  switch (type) {
    case Type::b8:
    case Type::u8: return make.template operator()<uint8_t>();
    case Type::s8: return make.template operator()<int8_t>();
    case Type::b16:
    case Type::u16: return make.template operator()<uint16_t>();
    case Type::s16: return make.template operator()<int16_t>();
    case Type::b32:
    case Type::u32: return make.template operator()<uint32_t>();
    case Type::s32: return make.template operator()<int32_t>();
    case Type::b64:
    case Type::u64: return make.template operator()<uint64_t>();
    case Type::s64: return make.template operator()<int64_t>();
    default: return nullptr;
  }
}

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// Twice as wide, of the same signedness.
template <class T>
struct Wide {
  using type =
      std::conditional_t<std::is_signed_v<T>,
                         std::conditional_t<sizeof(T) <= 2, int32_t,
                                            std::conditional_t<sizeof(T) == 4, int64_t, int128>>,
                         std::conditional_t<sizeof(T) <= 2, uint32_t,
                                            std::conditional_t<sizeof(T) == 4, uint64_t, uint128>>>;
};
template <class T>
using wide_t = typename Wide<T>::type;

inline Exec refuse(std::string& why, const char* sentence) {
  why = sentence;
  return nullptr;
}

inline Exec checked(Exec exec, std::string& why) {
  return exec ? exec : refuse(why, "the emulator does not implement this type for the instruction");
}

// The floating-point half of an opcode that has integer forms too (add, sub, mul, min, max, abs,
// neg).
Exec float_add(const Instr& in);
Exec float_sub(const Instr& in);
Exec float_mul(const Instr& in);
Exec float_min(const Instr& in);
Exec float_max(const Instr& in);
Exec float_abs(const Instr& in);
Exec float_neg(const Instr& in);
Exec float_setp(const Instr& in);
Exec float_div(const Instr& in);

// Pairs of 16-bit integers.
Exec min_pair(const Instr& in);
Exec max_pair(const Instr& in);
inline bool is_pair(Type t) { return t == Type::s16x2 || t == Type::u16x2; }

inline bool is_float(Type t) { return ptx::class_of(t) == 'f' || ptx::class_of(t) == 'x'; }

}  // namespace emu::ops
