// SPDX-License-Identifier: MIT
// mov, selp and setp (PTX ISA 9.7.9.2, 9.7.7).
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/predicate.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

// mov passes on the absence of a value: compilers copy registers that they never use on that path.
Step move(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row scratch;
  uint32_t known = w.defined(in.ops[1], active);
  uint64_t mask = in.type() == Type::pred         ? 1
                  : ptx::bits_of(in.type()) >= 64 ? ~0ull
                                                  : (1ull << ptx::bits_of(in.type())) - 1;
  const uint64_t* a = w.source(in.ops[1], known, scratch);
  uint64_t* d = w.destination(in.ops[0], known);
  for_lanes(known, [=](uint32_t i) { d[i] = a[i] & mask; });
  if (active != known) w.undefine(in.ops[0], active & ~known, w.why(in.ops[1]));
  return Step::next;
}

Step move_pred(Warp& w, const Instr& in, uint32_t active) {
  set_predicate(w, in.ops[0], active, predicate(w, in.ops[1], active));
  return Step::next;
}

Step move_b128(Warp& w, const Instr& in, uint32_t active) {
  for (uint32_t part = 0; part < 2; ++part) {
    Warp::Row scratch;
    Warp::Unknown unknown;
    const uint64_t* a = w.operand(in.ops[1], active, scratch, unknown, part);
    uint64_t* d = w.result(in.ops[0], active, unknown, part);
    for_lanes(active, [=](uint32_t i) { d[i] = a[i]; });
  }
  return Step::next;
}

// d = {a, b ..}: the first element is lowest. A .b128 takes two parts of 64 bits.
Step pack(Warp& w, const Instr& in, uint32_t active) {
  const auto& parts = in.ops[1].elements;
  uint32_t bits = ptx::bits_of(in.type()) / uint32_t(parts.size());
  uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t value[2][32] = {};
  Warp::Unknown unknown;
  for (uint32_t p = 0; p < parts.size(); ++p) {
    Warp::Row scratch;
    const uint64_t* a = w.operand(parts[p], active, scratch, unknown);
    uint32_t at = p * bits;
    for_lanes(active, [&](uint32_t i) { value[at / 64][i] |= (a[i] & mask) << at % 64; });
  }
  for (uint32_t half = 0; half < (bits * parts.size() > 64 ? 2 : 1); ++half) {
    uint64_t* d = w.result(in.ops[0], active, unknown, half);
    for_lanes(active, [&](uint32_t i) { d[i] = value[half][i]; });
  }
  return Step::next;
}

// The source may be one of the destinations, so it is read completely first.
Step unpack(Warp& w, const Instr& in, uint32_t active) {
  const auto& parts = in.ops[0].elements;
  uint32_t bits = ptx::bits_of(in.type()) / uint32_t(parts.size());
  uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t value[2][32];
  Warp::Unknown unknown;
  for (uint32_t half = 0; half < (bits * parts.size() > 64 ? 2 : 1); ++half) {
    Warp::Row scratch;
    const uint64_t* a = w.operand(in.ops[1], active, scratch, unknown, half);
    for_lanes(active, [&](uint32_t i) { value[half][i] = a[i]; });
  }
  for (uint32_t p = 0; p < parts.size(); ++p) {
    uint64_t* d = w.result(parts[p], active, unknown);
    uint32_t at = p * bits;
    for_lanes(active, [&](uint32_t i) { d[i] = value[at / 64][i] >> at % 64 & mask; });
  }
  return Step::next;
}

// The source is a special register of three parts, then a zero; a special register of one part,
// then three zeros; or a list of registers. Sources may be destinations, so they are read first.
Step move_vector(Warp& w, const Instr& in, uint32_t active) {
  const auto& to = in.ops[0].elements;
  const Operand& from = in.ops[1];
  const uint32_t bits = ptx::bits_of(in.type());
  const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t value[4][32] = {};
  Operand parts[4];  // `unknown` points to them
  Warp::Unknown unknown[4];
  for (size_t e = 0; e < to.size(); ++e) {
    Operand& part = parts[e] = from;
    if (from.kind == Operand::Kind::vector)
      part = from.elements[e];
    else if (e < size_t(from.imm))
      part.special = ptx::Special(size_t(from.special) + e);
    else
      continue;
    Warp::Row scratch;
    const uint64_t* a = w.operand(part, active, scratch, unknown[e]);
    for_lanes(active, [&](uint32_t i) { value[e][i] = a[i] & mask; });
  }
  for (size_t e = 0; e < to.size(); ++e) {
    uint64_t* d = w.result(to[e], active, unknown[e]);
    for_lanes(active, [&](uint32_t i) { d[i] = value[e][i]; });
  }
  return Step::next;
}

Step select(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  Warp::Unknown unknown;
  const uint32_t first = w.truth(in.ops[3], active, unknown), bits = ptx::bits_of(in.type());
  const uint32_t chosen = active & ~unknown.lanes;
  const uint64_t* a = w.operand(in.ops[1], chosen & first, sa, unknown);
  const uint64_t* b = w.operand(in.ops[2], chosen & ~first, sb, unknown);
  uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t* d = w.result(in.ops[0], active, unknown);
  for_lanes(active, [=](uint32_t i) { d[i] = (first >> i & 1 ? a[i] : b[i]) & mask; });
  return Step::next;
}

template <class T, auto F>
Step compare(Warp& w, const Instr& in, uint32_t active) {
  size_t at = setp_sources(in);
  Warp::Row sa, sb;
  Predicate p;
  const uint64_t* a = w.operand(in.ops[at], active, sa, p.unknown);
  const uint64_t* b = w.operand(in.ops[at + 1], active, sb, p.unknown);
  for (uint32_t i = 0; i < 32; ++i) p.yes |= uint32_t(F(T(a[i]), T(b[i]))) << i;
  set_predicates(w, in, active, p);
  return Step::next;
}

template <class T>
Exec integer_test(const Instr& in) {
  if (in.has(Mod::eq)) return compare<T, [](T a, T b) { return a == b; }>;
  if (in.has(Mod::ne)) return compare<T, [](T a, T b) { return a != b; }>;
  if (in.has(Mod::lt) || in.has(Mod::lo)) return compare<T, [](T a, T b) { return a < b; }>;
  if (in.has(Mod::le) || in.has(Mod::ls)) return compare<T, [](T a, T b) { return a <= b; }>;
  if (in.has(Mod::gt) || in.has(Mod::hi)) return compare<T, [](T a, T b) { return b < a; }>;
  if (in.has(Mod::ge) || in.has(Mod::hs)) return compare<T, [](T a, T b) { return b <= a; }>;
  return nullptr;
}

}  // namespace

Predicate with_third(const Instr& in, const Predicate& p, const Predicate& c) {
  return combine(p, c, [&](uint32_t a, uint32_t b) {
    return in.has(Mod::and_) ? a & b : in.has(Mod::or_) ? a | b : a ^ b;
  });
}

void set_predicates(Warp& w, const Instr& in, uint32_t active, const Predicate& result) {
  Predicate p = result, q = ~result;
  if (setp_combines(in)) {
    const Predicate c = predicate(w, in.ops.back(), active);
    p = with_third(in, p, c);
    q = with_third(in, q, c);
  }
  set_predicate(w, in.ops[0], active, p);
  if (setp_sources(in) == 2) set_predicate(w, in.ops[1], active, q);
}

Exec bind_mov(const Instr& in, std::string&) {
  if (in.has(Mod::v2) || in.has(Mod::v4)) return move_vector;
  if (in.ops[1].kind == Operand::Kind::vector) return pack;
  if (in.ops[0].kind == Operand::Kind::vector) return unpack;
  if (in.type() == Type::b128) return move_b128;
  return in.type() == Type::pred ? move_pred : move;
}

Exec bind_selp(const Instr&, std::string&) { return select; }

Exec bind_setp(const Instr& in, std::string& why) {
  if (is_float(in.type())) return checked(float_setp(in), why);
  return checked(by_integer(in.type(), [&]<class T>() { return integer_test<T>(in); }), why);
}

}  // namespace emu::ops
