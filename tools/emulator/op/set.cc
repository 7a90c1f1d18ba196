// SPDX-License-Identifier: MIT
// set and copysign (PTX ISA 9.7.7.1, 9.7.8.1, 9.7.3).
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

template <class T>
soft::Order order_of(T a, T b) {
  return a < b ? soft::Order::less : a == b ? soft::Order::equal : soft::Order::greater;
}

soft::Order compare(uint64_t a, uint64_t b, Type t, bool ftz) {
  switch (t) {
    case Type::f64: return soft::compare(a, b, soft::f64, ftz);
    case Type::f32: return soft::compare(uint32_t(a), uint32_t(b), soft::f32, ftz);
    case Type::f16:
    case Type::f16x2: return soft::compare(uint16_t(a), uint16_t(b), soft::f16, ftz);
    case Type::bf16:
    case Type::bf16x2: return soft::compare(uint16_t(a), uint16_t(b), soft::bf16, ftz);
    case Type::s16: return order_of(int16_t(a), int16_t(b));
    case Type::s32: return order_of(int32_t(a), int32_t(b));
    case Type::s64: return order_of(int64_t(a), int64_t(b));
    case Type::b16:
    case Type::u16: return order_of(uint16_t(a), uint16_t(b));
    case Type::b32:
    case Type::u32: return order_of(uint32_t(a), uint32_t(b));
    default: return order_of(a, b);
  }
}

// What stands for "true": 1 in floating types, all bits in integers.
uint64_t truth(Type t, bool pairs) {
  switch (t) {
    case Type::f32: return 0x3F800000;
    case Type::f16:
    case Type::f16x2: return 0x3C00;
    case Type::bf16:
    case Type::bf16x2: return 0x3F80;
    default: return pairs || ptx::bits_of(t) == 16 ? 0xFFFF : 0xFFFFFFFF;
  }
}

// Pairs of halves are compared half by half.
Step set(Warp& w, const Instr& in, uint32_t active) {
  const Type source = in.type(1);
  const bool pairs = ptx::class_of(source) == 'x', ftz = in.has(Mod::ftz);
  const uint32_t outcomes = outcomes_of(in);
  const uint64_t yes = truth(in.type(), pairs);
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint32_t c = setp_combines(in) ? w.truth(in.ops[3], active, unknown) : 0;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [&](uint32_t i) {
    uint64_t result = 0;
    for (uint32_t h = 0; h < (pairs ? 32 : 1); h += 16) {
      bool t = outcomes >> int(compare(a[i] >> h, b[i] >> h, source, ftz)) & 1;
      if (in.has(Mod::and_)) t &= c >> i & 1;
      if (in.has(Mod::or_)) t |= c >> i & 1;
      if (in.has(Mod::xor_)) t ^= c >> i & 1;
      result |= t ? yes << h : 0;
    }
    d[i] = result;
  });
  return Step::next;
}

// The magnitude of b with the sign of a.
template <class T>
T copy_sign(T a, T b) {
  const T sign = T(1) << (width<T> - 1);
  return (a & sign) | (b & ~sign);
}

}  // namespace

Exec bind_set(const Instr&, std::string&) { return set; }

Exec bind_copysign(const Instr& in, std::string&) {
  using U = uint32_t;
  using W = uint64_t;
  return in.type() == Type::f32 ? map2<U, U, U, copy_sign<U>> : map2<W, W, W, copy_sign<W>>;
}

}  // namespace emu::ops
