// SPDX-License-Identifier: MIT
// Integer, logical and floating-point updates of a word.
#include "tools/emulator/op/reduction.h"

#include <algorithm>

#include "tools/emulator/arithmetic/softfloat.h"

namespace emu::ops {

namespace {

template <class T>
uint64_t update_as(uint8_t* host, Update f, uint64_t b, uint64_t c) {
  T* word = reinterpret_cast<T*>(host);
  T old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old, T(f(old, b, c)), false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return old;
}

uint64_t exchange(uint64_t, uint64_t b, uint64_t) { return b; }
uint64_t compare_and_swap(uint64_t old, uint64_t b, uint64_t c) { return old == b ? c : old; }
uint64_t and_of(uint64_t old, uint64_t b, uint64_t) { return old & b; }
uint64_t or_of(uint64_t old, uint64_t b, uint64_t) { return old | b; }
uint64_t xor_of(uint64_t old, uint64_t b, uint64_t) { return old ^ b; }
uint64_t add_integer(uint64_t old, uint64_t b, uint64_t) { return old + b; }
uint64_t increment(uint64_t old, uint64_t b, uint64_t) { return old >= b ? 0 : old + 1; }
uint64_t decrement(uint64_t old, uint64_t b, uint64_t) { return old == 0 || old > b ? b : old - 1; }
template <class T>
uint64_t min_of(uint64_t old, uint64_t b, uint64_t) {
  return register_bits(std::min(T(old), T(b)));
}
template <class T>
uint64_t max_of(uint64_t old, uint64_t b, uint64_t) {
  return register_bits(std::max(T(old), T(b)));
}

template <const soft::Format& F, int Parts, bool Ftz>
uint64_t add_float(uint64_t old, uint64_t b, uint64_t) {
  constexpr uint32_t bits = 1 + F.exponent_bits + F.mantissa_bits;
  constexpr uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  soft::Rules rules;
  rules.ftz = Ftz;
  uint64_t sum = 0;
  for (uint32_t p = 0; p < Parts; ++p)
    sum |= soft::add(old >> p * bits & mask, b >> p * bits & mask, F, rules) << p * bits;
  return sum;
}

template <const soft::Format& F>
uint64_t min_float(uint64_t old, uint64_t b, uint64_t) {
  return soft::minimum(old, b, F, false, false);
}
template <const soft::Format& F>
uint64_t max_float(uint64_t old, uint64_t b, uint64_t) {
  return soft::maximum(old, b, F, false, false);
}

// For two halves.
template <uint64_t (*F)(uint64_t, uint64_t, uint64_t)>
uint64_t halves(uint64_t old, uint64_t b, uint64_t) {
  return F(old >> 16, b >> 16, 0) << 16 | F(old & 0xFFFF, b & 0xFFFF, 0);
}

Update add_of(Type type, bool in_global) {
  switch (type) {
    case Type::f32:
      return in_global ? add_float<soft::f32, 1, true> : add_float<soft::f32, 1, false>;
    case Type::f64: return add_float<soft::f64, 1, false>;
    case Type::f16: return add_float<soft::f16, 1, false>;
    case Type::f16x2: return add_float<soft::f16, 2, false>;
    case Type::bf16: return add_float<soft::bf16, 1, false>;
    case Type::bf16x2: return add_float<soft::bf16, 2, false>;
    default: return add_integer;
  }
}

Update extreme_of(Type type, bool min) {
  switch (type) {
    case Type::f16: return min ? min_float<soft::f16> : max_float<soft::f16>;
    case Type::bf16: return min ? min_float<soft::bf16> : max_float<soft::bf16>;
    case Type::f16x2: return min ? halves<min_float<soft::f16>> : halves<max_float<soft::f16>>;
    case Type::bf16x2: return min ? halves<min_float<soft::bf16>> : halves<max_float<soft::bf16>>;
    case Type::s32: return min ? min_of<int32_t> : max_of<int32_t>;
    case Type::u32: return min ? min_of<uint32_t> : max_of<uint32_t>;
    case Type::s64: return min ? min_of<int64_t> : max_of<int64_t>;
    default: return min ? min_of<uint64_t> : max_of<uint64_t>;
  }
}

}  // namespace

uint64_t update_global(uint8_t* host, uint32_t bytes, Update f, uint64_t b, uint64_t c) {
  if (bytes == 1) return update_as<uint8_t>(host, f, b, c);
  if (bytes == 2) return update_as<uint16_t>(host, f, b, c);
  if (bytes == 4) return update_as<uint32_t>(host, f, b, c);
  return update_as<uint64_t>(host, f, b, c);
}

Update reduction_of(const Instr& in, Type type, bool in_global) {
  if (in.has(Mod::add)) return add_of(type, in_global);
  if (in.has(Mod::min) || in.has(Mod::max)) return extreme_of(type, in.has(Mod::min));
  if (in.has(Mod::exch)) return exchange;
  if (in.has(Mod::cas)) return compare_and_swap;
  if (in.has(Mod::and_)) return and_of;
  if (in.has(Mod::or_)) return or_of;
  if (in.has(Mod::xor_)) return xor_of;
  if (in.has(Mod::inc)) return increment;
  return in.has(Mod::dec) ? decrement : nullptr;
}

}  // namespace emu::ops
