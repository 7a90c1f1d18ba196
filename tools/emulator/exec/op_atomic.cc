// SPDX-License-Identifier: MIT
// atom and red (PTX ISA 9.7.13.3, 9.7.13.4). Lanes act one after another, lowest first; hardware
// leaves their order open.
#include <algorithm>

#include "binders.h"
#include "lane_memory.h"
#include "op.h"
#include "softfloat.h"

namespace emu::ops {

namespace {

// The new value of a word from the old one and the operands.
using Update = uint64_t (*)(uint64_t old, uint64_t b, uint64_t c);

// Only global words are shared with other host threads; everything else belongs to this one.
template <class T>
uint64_t update_global(uint8_t* host, Update f, uint64_t b, uint64_t c) {
  T* word = reinterpret_cast<T*>(host);
  T old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old, T(f(old, b, c)), false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return old;
}

uint64_t update(const Place& p, uint32_t at, uint32_t bytes, Update f, uint64_t b, uint64_t c) {
  if (p.space == Space::global) {
    if (bytes == 2) return update_global<uint16_t>(p.host + at, f, b, c);
    if (bytes == 4) return update_global<uint32_t>(p.host + at, f, b, c);
    return update_global<uint64_t>(p.host + at, f, b, c);
  }
  uint64_t old = p.read(at, bytes, "atomic");
  p.write(at, bytes, f(old, b, c), "atomic");
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
  constexpr uint64_t mask = (1ull << bits) - 1;
  soft::Rules rules;
  rules.ftz = Ftz;
  uint64_t sum = 0;
  for (uint32_t p = 0; p < Parts; ++p)
    sum |= uint64_t(soft::add(uint32_t(old >> p * bits & mask), uint32_t(b >> p * bits & mask), F,
                              rules))
           << p * bits;
  return sum;
}

// atom.add.f32 flushes subnormals in global memory and keeps them in shared memory (PTX ISA, atom).
Update choose_add(const Instr& in, bool in_global) {
  switch (in.type()) {
    case Type::f32:
      return in_global ? add_float<soft::f32, 1, true> : add_float<soft::f32, 1, false>;
    case Type::f16: return add_float<soft::f16, 1, false>;
    case Type::f16x2: return add_float<soft::f16, 2, false>;
    case Type::bf16: return add_float<soft::bf16, 1, false>;
    case Type::bf16x2: return add_float<soft::bf16, 2, false>;
    default: return add_integer;
  }
}

Update choose_extreme(const Instr& in) {
  bool min = in.has(Mod::min);
  switch (in.type()) {
    case Type::s32: return min ? min_of<int32_t> : max_of<int32_t>;
    case Type::u32: return min ? min_of<uint32_t> : max_of<uint32_t>;
    case Type::s64: return min ? min_of<int64_t> : max_of<int64_t>;
    default: return min ? min_of<uint64_t> : max_of<uint64_t>;
  }
}

Update choose(const Instr& in, bool in_global) {
  if (in.has(Mod::add)) return choose_add(in, in_global);
  if (in.has(Mod::min) || in.has(Mod::max)) return choose_extreme(in);
  if (in.has(Mod::exch)) return exchange;
  if (in.has(Mod::cas)) return compare_and_swap;
  if (in.has(Mod::and_)) return and_of;
  if (in.has(Mod::or_)) return or_of;
  if (in.has(Mod::xor_)) return xor_of;
  return in.has(Mod::inc) ? increment : decrement;
}

const Operand& element(const Operand& op, size_t i) {
  return op.kind == Operand::Kind::vector ? op.elements[i] : op;
}

// atom d, [a], b{, c} and red [a], b: `First` is the index of the address.
template <size_t First>
Step atomic(Warp& w, const Instr& in, uint32_t active) {
  const Operand& address = in.ops[First];
  const Operand& b = in.ops[First + 1];
  uint32_t bytes = ptx::bits_of(in.type()) / 8;
  uint32_t words = b.kind == Operand::Kind::vector ? uint32_t(b.elements.size()) : 1;
  Space space = space_named(in);
  Place places[32];  // the destination may be the address register
  for_lanes(active, [&](uint32_t i) {
    places[i] = locate(w, i, space, w.address(address, i), bytes * words, in.opcode);
  });
  for (uint32_t e = 0; e < words; ++e) {
    Warp::Row sb, sc;
    const uint64_t* operand = w.source(element(b, e), active, sb);
    const uint64_t* other = in.has(Mod::cas) ? w.source(in.ops[First + 2], active, sc) : operand;
    uint64_t width = bytes == 8 ? ~0ull : (1ull << bytes * 8) - 1;
    uint64_t old[32];
    for_lanes(active, [&](uint32_t i) {
      const Place& p = places[i];
      old[i] = update(p, e * bytes, bytes, choose(in, p.space == Space::global), operand[i] & width,
                      other[i] & width);
    });
    if (First == 1) for_lanes(active, [&](uint32_t i) { w.set(element(in.ops[0], e), i, old[i]); });
  }
  return Step::next;
}

}  // namespace

Exec bind_atom(const Instr&, std::string&) { return atomic<1>; }
Exec bind_red(const Instr&, std::string&) { return atomic<0>; }

}  // namespace emu::ops
