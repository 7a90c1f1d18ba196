// SPDX-License-Identifier: MIT
// atom and red (PTX ISA 9.7.13.3, 9.7.13.4). Lanes act one after another, lowest first; hardware
// leaves their order open.
#include <bit>
#include <mutex>

#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/reduction.h"

namespace emu::ops {

namespace {

uint64_t update(const Bytes& p, uint32_t at, uint32_t bytes, Update f, uint64_t b, uint64_t c) {
  if (p.place().space == Space::global)
    return update_global(p.global(at, bytes, "atomic"), bytes, f, b, c);
  uint64_t old = p.read(at, bytes, "atomic");
  p.write(at, bytes, f(old, b, c), "atomic");
  return old;
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
  Bytes places[32];  // the destination may be the address register
  for_lanes(active, [&](uint32_t i) {
    const Place at = locate(w, i, space, w.address(address, i), bytes * words, in.opcode);
    places[i] = at.open(in, bytes * words, Use::atomic);
  });
  w.cta.counters.atomics += uint32_t(std::popcount(active));
  uint64_t changed = 0, found = active;  // a lock that is taken is polled like a flag
  for (uint32_t e = 0; e < words; ++e) {
    Warp::Row sb, sc;
    const uint64_t* operand = w.source(element(b, e), active, sb);
    const uint64_t* other = in.has(Mod::cas) ? w.source(in.ops[First + 2], active, sc) : operand;
    uint64_t width = bytes == 8 ? ~0ull : (1ull << bytes * 8) - 1;
    uint64_t old[32];
    for_lanes(active, [&](uint32_t i) {
      const Bytes& p = places[i];
      const Update f = reduction_of(in, in.type(), p.place().space == Space::global);
      const uint64_t b_i = operand[i] & width, c_i = other[i] & width;
      old[i] = update(p, e * bytes, bytes, f, b_i, c_i);
      changed |= (f(old[i], b_i, c_i) ^ old[i]) & width;
      found = (found ^ old[i]) * 0x9E3779B97F4A7C15;
    });
    if (First == 1) for_lanes(active, [&](uint32_t i) { w.set(element(in.ops[0], e), i, old[i]); });
  }
  for_lanes(active, [&](uint32_t i) { places[i].acquire(in); });
  return First == 1 && !changed ? w.poll(in, found) : Step::next;
}

// .exch and .cas of 16 bytes. No host instruction does it, so that these wait for each other.
Step atomic_b128(Warp& w, const Instr& in, uint32_t active) {
  static std::mutex one_at_a_time;
  constexpr uint32_t half = 8;
  uint64_t b[2][32], c[2][32];
  for (uint32_t part = 0; part < 2; ++part) {
    Warp::Row scratch;
    const uint64_t* row = w.source(in.ops[2], active, scratch, part);
    for_lanes(active, [&](uint32_t i) { b[part][i] = row[i]; });
    if (in.has(Mod::cas)) row = w.source(in.ops[3], active, scratch, part);
    for_lanes(active, [&](uint32_t i) { c[part][i] = row[i]; });
  }
  const Space space = space_named(in);
  w.cta.counters.atomics += uint32_t(std::popcount(active));
  for_lanes(active, [&](uint32_t i) {
    const Place at = locate(w, i, space, w.address(in.ops[1], i), 2 * half, in.opcode);
    const Bytes p = at.open(in, 2 * half, Use::atomic);
    std::lock_guard guard(one_at_a_time);
    const uint64_t low = p.read(0, half, in.opcode), high = p.read(half, half, in.opcode);
    const bool store = !in.has(Mod::cas) || (low == b[0][i] && high == b[1][i]);
    if (store) {
      p.write(0, half, c[0][i], in.opcode);
      p.write(half, half, c[1][i], in.opcode);
    }
    w.set(in.ops[0], i, low, 0);
    w.set(in.ops[0], i, high, 1);
    p.acquire(in);
  });
  return Step::next;
}

}  // namespace

Exec bind_atom(const Instr& in, std::string&) {
  return in.type() == Type::b128 ? atomic_b128 : atomic<1>;
}
Exec bind_red(const Instr&, std::string&) { return atomic<0>; }

}  // namespace emu::ops
