// SPDX-License-Identifier: MIT
// Extended precision: what reads or writes the carry CC.CF of each thread (PTX ISA 9.7.2). This
// file has add, sub and mad with .cc, and all forms of addc, subc and madc.
#include "tools/emulator/op/carry.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

template <class T>
struct Sum {
  unsigned_t<T> value;
  bool carry;
};

// a + b + c, c being 0 or 1.
template <class T>
Sum<T> sum(T a, T b, bool c) {
  using U = unsigned_t<T>;
  const uint128 s = uint128(U(a)) + U(b) + c;
  return {U(s), bool(s >> width<T> & 1)};
}

// a + ~b + c, as the adder of sm_90a and sm_100a takes it: the carry is set where nothing was
// borrowed. The manual says "borrow-out written to CC.CF". sub.cc with subc works with either
// meaning, but nvcc's division of unsigned __int128 has addc after sub.cc and needs this one.
template <class T>
Sum<T> difference(T a, T b, bool c) {
  return sum<T>(a, T(~b), c);
}
template <class T>
Sum<T> first_difference(T a, T b, bool) {
  return difference<T>(a, b, true);
}

template <class T>
T product(T a, T b, bool high) {
  const wide_t<T> p = wide_t<T>(a) * wide_t<T>(b);
  return T(high ? p >> width<T> : p);
}

uint32_t carries(const Warp& w, const Instr& in, uint32_t active) {
  if (const uint32_t none = active & ~w.has_carry)
    throw Fault(
        FaultKind::uninitialised,
        format("%s reads the carry in lanes 0x%08x, where no .cc instruction has written it",
               in.opcode, none));
  return w.carry;
}

// `f(i, c)` computes lane i.
template <class T, class F>
void each(Warp& w, const Instr& in, uint32_t active, bool reads, Warp::Unknown unknown, F f) {
  const uint32_t before = reads ? carries(w, in, active) : 0;
  if (const uint32_t missing = reads ? active & w.carry_unknown : 0)
    unknown = {unknown.lanes | missing, nullptr};
  uint64_t* d = w.result(in.ops[0], active, unknown);
  uint32_t after = 0;
  for_lanes(active, [&](uint32_t i) {
    const Sum<T> s = f(i, before >> i & 1);
    d[i] = s.value;
    after |= uint32_t(s.carry) << i;
  });
  if (!in.has(Mod::cc)) return;
  w.carry = (w.carry & ~active) | after;
  w.has_carry |= active;
  w.carry_unknown = (w.carry_unknown & ~active) | unknown.lanes;
  if (unknown.lanes) w.carry_why = w.why(in.ops[0]);
}

template <class T, bool Reads, auto F>
Step two(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  each<T>(w, in, active, Reads, unknown,
          [&](uint32_t i, bool c) { return F(T(a[i]), T(b[i]), c); });
  return Step::next;
}

template <class T, bool Reads>
Step mad(Warp& w, const Instr& in, uint32_t active) {
  const bool high = in.has(Mod::hi);
  Warp::Row sa, sb, sc;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], active, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], active, sb, unknown);
  const uint64_t* c = w.operand(in.ops[3], active, sc, unknown);
  each<T>(w, in, active, Reads, unknown, [&](uint32_t i, bool carry) {
    return sum<T>(product<T>(T(a[i]), T(b[i]), high), T(c[i]), carry);
  });
  return Step::next;
}

template <bool Reads>
Exec add_of(const Instr& in) {
  return by_integer(in.type(), []<class T>() -> Exec { return two<T, Reads, sum<T>>; });
}
template <bool Reads>
Exec sub_of(const Instr& in) {
  return by_integer(in.type(), []<class T>() -> Exec {
    return two < T, Reads, Reads ? difference<T> : first_difference < T >> ;
  });
}
template <bool Reads>
Exec mad_of(const Instr& in) {
  return by_integer(in.type(), []<class T>() -> Exec { return mad<T, Reads>; });
}

}  // namespace

Exec add_cc(const Instr& in) { return add_of<false>(in); }
Exec sub_cc(const Instr& in) { return sub_of<false>(in); }
Exec mad_cc(const Instr& in) { return mad_of<false>(in); }

Exec bind_addc(const Instr& in, std::string& why) { return checked(add_of<true>(in), why); }
Exec bind_subc(const Instr& in, std::string& why) { return checked(sub_of<true>(in), why); }
Exec bind_madc(const Instr& in, std::string& why) { return checked(mad_of<true>(in), why); }

}  // namespace emu::ops
