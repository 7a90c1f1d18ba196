// SPDX-License-Identifier: MIT
// Logic, shifts, bit fields and bit counts (PTX ISA 9.7.1, 9.7.8).
#include <algorithm>
#include <bit>

#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/predicate.h"

namespace emu::ops {

namespace {

// Shift amounts are clamped to the width, not masked as in C on x86.
template <class T>
T shift_left(T a, uint32_t n) {
  return n >= width<T> ? T(0) : T(a << n);
}
template <class T>
T shift_right(T a, uint32_t n) {
  if (n >= width<T>) return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
  return T(a >> n);
}

// Byte selector of prmt: bits 0..2 pick a byte of {b, a}, bit 3 spreads that byte's sign.
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t d = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t s = selector >> 4 * i & 15;
    uint32_t byte = uint32_t(bytes >> 8 * (s & 7)) & 0xFF;
    if (s & 8) byte = byte & 0x80 ? 0xFF : 0;
    d |= byte << 8 * i;
  }
  return d;
}

// The special modes as selectors; c selects one of four (PTX ISA, prmt, table).
constexpr uint16_t forward4[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr uint16_t backward4[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr uint16_t replicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr uint16_t edge_left[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr uint16_t edge_right[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr uint16_t replicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

template <const uint16_t (&Table)[4]>
Exec permute_by() {
  return map3<uint32_t, uint32_t, uint32_t, uint32_t,
              [](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, Table[c & 3]); }>;
}

// bfe: `length` bits from `start`; bits beyond the operand are zero, or copies of the field's sign.
// The manual cuts the length to 8 bits. For 64-bit operands hardware does not (measured: H200).
template <class T>
T extract(T a, uint32_t start, uint32_t length) {
  start &= 0xFF;
  length = width<T> == 64 ? std::min(length, 0xFFu) : length & 0xFF;
  if (length == 0) return 0;
  constexpr uint32_t msb = width<T> - 1;
  uint64_t bits = unsigned_t<T>(a);
  bool sign = std::is_signed_v<T> && bits >> std::min(start + length - 1, msb) & 1;
  uint64_t field = start > msb ? 0 : bits >> start;
  uint32_t have = start > msb ? 0 : std::min(length, msb + 1 - start);
  uint64_t mask = have >= 64 ? ~0ull : (1ull << have) - 1;
  return T((field & mask) | (sign ? ~mask : 0));
}

template <class T>
T insert(T field, T into, uint32_t start, uint32_t length) {
  start &= 0xFF, length &= 0xFF;
  if (start >= width<T>) return into;
  uint32_t n = std::min(length, width<T> - start);
  uint64_t mask = (n >= 64 ? ~0ull : (1ull << n) - 1) << start;
  return T((uint64_t(into) & ~mask) | (uint64_t(field) << start & mask));
}

// bfind: position of the highest bit that is not a copy of the sign, or all ones.
template <class T>
uint32_t find_high(T a) {
  unsigned_t<T> bits = unsigned_t<T>(std::is_signed_v<T> && a < 0 ? ~a : a);
  return bits ? uint32_t(std::bit_width(bits)) - 1 : ~0u;
}

template <class T>
T reverse(T a) {
  T d = 0;
  for (uint32_t i = 0; i < width<T>; ++i) d = T(d << 1 | (a >> i & 1));
  return d;
}

// and, or, xor, not of predicates work on lane masks, as sources may be negated.
template <auto F>
Step pred2(Warp& w, const Instr& in, uint32_t active) {
  const Predicate a = predicate(w, in.ops[1], active), b = predicate(w, in.ops[2], active);
  set_predicate(w, in.ops[0], active, combine(a, b, F));
  return Step::next;
}

template <auto F>
Exec logic(const Instr& in, std::string& why) {
  if (in.type() == Type::pred) return pred2<F>;
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return T(F(a, b)); }>;
                            }),
                 why);
}

// `count` ones from bit `first` on.
template <bool Clamp>
uint32_t ones(uint32_t first, uint32_t count) {
  if (!Clamp) first &= 31, count &= 31;
  return first > 31 ? 0 : (count > 31 ? ~0u : (1u << count) - 1) << first;
}

}  // namespace

Exec bind_and(const Instr& in, std::string& why) {
  return logic<[](auto a, auto b) { return a & b; }>(in, why);
}
Exec bind_or(const Instr& in, std::string& why) {
  return logic<[](auto a, auto b) { return a | b; }>(in, why);
}
Exec bind_xor(const Instr& in, std::string& why) {
  return logic<[](auto a, auto b) { return a ^ b; }>(in, why);
}

Exec bind_not(const Instr& in, std::string& why) {
  if (in.type() == Type::pred) return map1<bool, uint8_t, [](uint8_t a) { return !(a & 1); }>;
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec { return map1<T, T, [](T a) { return T(~a); }>; }),
      why);
}

Exec bind_shl(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec {
                   return map2<T, T, uint32_t, [](T a, uint32_t n) { return shift_left<T>(a, n); }>;
                 }),
      why);
}

Exec bind_shr(const Instr& in, std::string& why) {
  return checked(
      by_integer(
          in.type(),
          []<class T>() -> Exec {
            return map2<T, T, uint32_t, [](T a, uint32_t n) { return shift_right<T>(a, n); }>;
          }),
      why);
}

// Funnel shift of {b, a}: .l gives the upper word of the shifted pair, .r the lower.
Exec bind_shf(const Instr& in, std::string&) {
  using U = uint32_t;
  if (in.has(Mod::l) && in.has(Mod::clamp))
    return map3<U, U, U, U, [](U a, U b, U c) {
      U n = std::min(c, 32u);
      return U(((uint64_t(b) << 32 | a) << n) >> 32);
    }>;
  if (in.has(Mod::l))
    return map3<U, U, U, U,
                [](U a, U b, U c) { return U(((uint64_t(b) << 32 | a) << (c & 31)) >> 32); }>;
  if (in.has(Mod::clamp))
    return map3<U, U, U, U,
                [](U a, U b, U c) { return U((uint64_t(b) << 32 | a) >> std::min(c, 32u)); }>;
  return map3<U, U, U, U, [](U a, U b, U c) { return U((uint64_t(b) << 32 | a) >> (c & 31)); }>;
}

Exec bind_prmt(const Instr& in, std::string&) {
  if (in.has(Mod::f4e)) return permute_by<forward4>();
  if (in.has(Mod::b4e)) return permute_by<backward4>();
  if (in.has(Mod::rc8)) return permute_by<replicate8>();
  if (in.has(Mod::ecl)) return permute_by<edge_left>();
  if (in.has(Mod::ecr)) return permute_by<edge_right>();
  if (in.has(Mod::rc16)) return permute_by<replicate16>();
  return map3<uint32_t, uint32_t, uint32_t, uint32_t, permute>;
}

namespace {

// Bit i of the table is the result for a = i>>2 & 1, b = i>>1 & 1, c = i & 1.
uint32_t look_up(uint32_t table, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 8; ++i)
    if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}

// lop3.or.b32 d|p, a, b, c, table, q: p is (d != 0) or q. Without .or or .and the instruction
// writes only d.
template <bool WithPredicate>
Step lop3(Warp& w, const Instr& in, uint32_t active) {
  constexpr size_t at = WithPredicate ? 2 : 1;
  Warp::Row sa, sb, sc;
  Predicate p;
  const uint64_t* a = w.operand(in.ops[at], active, sa, p.unknown);
  const uint64_t* b = w.operand(in.ops[at + 1], active, sb, p.unknown);
  const uint64_t* c = w.operand(in.ops[at + 2], active, sc, p.unknown);
  const uint32_t table = uint32_t(in.ops[at + 3].imm);
  uint32_t value[32];
  for_lanes(active, [&](uint32_t i) {
    value[i] = look_up(table, uint32_t(a[i]), uint32_t(b[i]), uint32_t(c[i]));
    p.yes |= uint32_t(value[i] != 0) << i;
  });
  Predicate combined;
  if (WithPredicate) {
    const Predicate q = predicate(w, in.ops.back(), active);
    combined =
        combine(p, q, [&](uint32_t x, uint32_t y) { return in.has(Mod::and_) ? x & y : x | y; });
  }
  uint64_t* d = w.result(in.ops[0], active, p.unknown);
  for_lanes(active, [&](uint32_t i) { d[i] = value[i]; });
  if (WithPredicate) set_predicate(w, in.ops[1], active, combined);
  return Step::next;
}

}  // namespace

Exec bind_lop3(const Instr& in, std::string&) {
  return in.has(Mod::and_) || in.has(Mod::or_) ? lop3<true> : lop3<false>;
}

Exec bind_bfe(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec {
                   return map3<T, T, uint32_t, uint32_t,
                               [](T a, uint32_t b, uint32_t c) { return extract<T>(a, b, c); }>;
                 }),
      why);
}

template <class T>
static Step bfi(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb, sc, sn;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  const uint64_t* c = w.operand(in.ops[3], active, sc, unknown);
  const uint64_t* n = w.operand(in.ops[4], active, sn, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) {
    d[i] = insert<T>(T(a[i]), T(b[i]), uint32_t(c[i]), uint32_t(n[i]));
  });
  return Step::next;
}

Exec bind_bfi(const Instr& in, std::string&) {
  return in.type() == Type::b64 ? bfi<uint64_t> : bfi<uint32_t>;
}

Exec bind_popc(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec {
                   return map1<uint32_t, T, [](T a) { return std::popcount(unsigned_t<T>(a)); }>;
                 }),
      why);
}

Exec bind_clz(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec {
                   return map1<uint32_t, T, [](T a) { return std::countl_zero(unsigned_t<T>(a)); }>;
                 }),
      why);
}

Exec bind_bmsk(const Instr& in, std::string&) {
  using U = uint32_t;
  return in.has(Mod::clamp) ? map2<U, U, U, ones<true>> : map2<U, U, U, ones<false>>;
}

Exec bind_brev(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(),
                 []<class T>() -> Exec { return map1<T, T, [](T a) { return reverse<T>(a); }>; }),
      why);
}

Exec bind_bfind(const Instr& in, std::string& why) {
  if (in.has(Mod::shiftamt))
    return checked(by_integer(in.type(),
                              []<class T>() -> Exec {
                                return map1<uint32_t, T, [](T a) {
                                  uint32_t at = find_high<T>(a);
                                  return at == ~0u ? at : width<T> - 1 - at;
                                }>;
                              }),
                   why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map1<uint32_t, T, [](T a) { return find_high<T>(a); }>;
                            }),
                 why);
}

}  // namespace emu::ops
