// SPDX-License-Identifier: MIT
// Dot products of bytes, sums of absolute differences, and pairs of 16-bit integers (PTX ISA
// 9.7.1).
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

// Element i of `bits` bits.
int64_t part(uint32_t v, uint32_t i, uint32_t bits, bool is_signed) {
  const uint32_t raw = v >> i * bits & ((1u << bits) - 1);
  return is_signed && raw >> (bits - 1) ? int64_t(raw) - (1 << bits) : int64_t(raw);
}

// `count` products of elements of a with those of b that begin at `first`.
template <uint32_t Bits, uint32_t Count, bool SignedA, bool SignedB, uint32_t First>
uint32_t dot(uint32_t a, uint32_t b, uint32_t c) {
  int64_t sum = c;
  for (uint32_t i = 0; i < Count; ++i)
    sum += part(a, i, Bits, SignedA) * part(b, First + i, 8, SignedB);
  return uint32_t(sum);
}

template <uint32_t Bits, uint32_t Count, uint32_t First>
Exec by_signs(const Instr& in) {
  const bool a = in.type(0) == Type::s32, b = in.type(1) == Type::s32;
  using U = uint32_t;
  if (a && b) return map3<U, U, U, U, dot<Bits, Count, true, true, First>>;
  if (a) return map3<U, U, U, U, dot<Bits, Count, true, false, First>>;
  if (b) return map3<U, U, U, U, dot<Bits, Count, false, true, First>>;
  return map3<U, U, U, U, dot<Bits, Count, false, false, First>>;
}

template <class T>
T difference_sum(T a, T b, T c) {
  using U = unsigned_t<T>;
  return T(U(c) + (a < b ? U(U(b) - U(a)) : U(U(a) - U(b))));
}

template <class T, bool Greater>
uint32_t pick_pair(uint32_t a, uint32_t b) {
  uint32_t d = 0;
  for (uint32_t h = 0; h < 32; h += 16) {
    const T x = T(a >> h), y = T(b >> h);
    d |= uint32_t(uint16_t((x < y) == Greater ? y : x)) << h;
  }
  return d;
}

}  // namespace

Exec bind_dp4a(const Instr& in, std::string&) { return by_signs<8, 4, 0>(in); }

Exec bind_dp2a(const Instr& in, std::string&) {
  return in.has(Mod::hi) ? by_signs<16, 2, 2>(in) : by_signs<16, 2, 0>(in);
}

Exec bind_sad(const Instr& in, std::string& why) {
  return checked(
      by_integer(in.type(), []<class T>() -> Exec { return map3<T, T, T, T, difference_sum<T>>; }),
      why);
}

Exec min_pair(const Instr& in) {
  using U = uint32_t;
  return in.type() == Type::s16x2 ? map2<U, U, U, pick_pair<int16_t, false>>
                                  : map2<U, U, U, pick_pair<uint16_t, false>>;
}
Exec max_pair(const Instr& in) {
  using U = uint32_t;
  return in.type() == Type::s16x2 ? map2<U, U, U, pick_pair<int16_t, true>>
                                  : map2<U, U, U, pick_pair<uint16_t, true>>;
}

}  // namespace emu::ops
