// SPDX-License-Identifier: MIT
// ld, st (PTX ISA 9.7.9.8, 9.7.9.12), prefetch and createpolicy.
//
// Cache operators, eviction priorities and policies change no value. Order needs no more than
// program order: one host thread runs a cluster, and global accesses are acquire and release
// (lane_memory.h).
#include <bit>
#include <cstring>

#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/no_value.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/shared_access.h"

namespace emu::ops {

namespace {

size_t element_count(const Operand& op) {
  return op.kind == Operand::Kind::vector ? op.elements.size() : 1;
}
const Operand& element(const Operand& op, size_t i) {
  return op.kind == Operand::Kind::vector ? op.elements[i] : op;
}

// A .b128 register is two slots, accessed as two words.
struct Shape {
  uint32_t bytes, words, parts;
};
Shape shape_of(const Instr& in, const Operand& value) {
  if (in.type() == Type::b128) return {8, 2, 2};
  return {ptx::bits_of(in.type()) / 8, uint32_t(element_count(value)), 1};
}

// Bytes to count for the lanes: those in global memory, and those in other CTAs.
void count(Warp& w, const Bytes* bytes_of, uint32_t active, uint64_t bytes,
           uint64_t Counters::*global) {
  Counters& c = w.cta.counters;
  for (; active; active &= active - 1) {
    const Place& p = bytes_of[std::countr_zero(active)].place();
    if (p.space == Space::global) c.*global += bytes;
    if (p.cta && p.cta != &w.cta) c.cluster_bytes += bytes;
  }
}

// Relaxed or stronger: an access that may meet others of its kind, and through which flags work.
bool strong(const Instr& in) {
  return in.has(Mod::volatile_) || in.has(Mod::relaxed) || in.has(Mod::acquire) ||
         in.has(Mod::release);
}

// A hash of the lanes of a strong load and of their values. A loop that gets the same hash twice is
// only waiting.
uint64_t found(const Warp& w, const Instr& in, uint32_t active, uint32_t words) {
  uint64_t all = active;
  const auto add = [&](uint64_t value) { all = (all ^ value) * 0x9E3779B97F4A7C15; };
  for_lanes(active, [&](uint32_t i) {
    for (uint32_t e = 0; e < words; ++e)
      if (const Operand& op = element(in.ops[0], e); w.defined(op, 1u << i)) add(w.get(op, i));
  });
  return all;
}

constexpr bool may_lack_value(Space s) { return s != Space::param && s != Space::constant; }

template <Space S>
Step load(Warp& w, const Instr& in, uint32_t active) {
  const Operand& value = in.ops[0];
  Shape shape = shape_of(in, value);
  bool is_signed = ptx::class_of(in.type()) == 's';
  const bool is_strong = strong(in);
  const Use use = is_strong ? Use::strong_read : in.has(Mod::nc) ? Use::constant_read : Use::read;
  if (S == Space::shared_cta && use == Use::read && shape.parts == 1 &&
      load_together(w, in, active, shape.bytes, shape.words))
    return Step::next;
  if ((S == Space::global || S == Space::generic) && !is_strong && shape.parts == 1 &&
      load_global_together(w, in, active, shape.bytes, shape.words, use))
    return Step::next;
  uint32_t unused = 64 - shape.bytes * 8;
  const uint32_t all = shape.bytes * shape.words;
  Bytes from[32];  // all addresses first: a destination may be the address register
  for_lanes(active, [&](uint32_t i) {
    from[i] = locate(w, i, S, w.address(in.ops[1], i), all, "load").open(in, all, use);
  });
  count(w, from, active, shape.bytes * shape.words, &Counters::global_load_bytes);
  for (uint32_t e = 0; e < shape.words; ++e) {
    const Operand& op = element(value, shape.parts == 2 ? 0 : e);
    for_lanes(active, [&](uint32_t i) {
      const uint32_t at = e * shape.bytes;
      if (may_lack_value(S) && shape.parts == 1 && from[i].place().may_lack_value() &&
          !from[i].has_value(at, shape.bytes, "load"))
        return w.undefine(op, 1u << i, why_loaded_none(in, from[i], at, shape.bytes));
      uint64_t v = from[i].read(e * shape.bytes, shape.bytes, "load");
      if (is_signed) v = uint64_t(int64_t(v << unused) >> unused);
      w.set(op, i, v, shape.parts == 2 ? e : 0);
    });
  }
  // This must follow the read: if the value was released, that release has been recorded by now,
  // whichever host thread it ran on.
  if (!is_strong) return Step::next;
  for_lanes(active, [&](uint32_t i) { from[i].acquire(in); });
  return w.poll(in, found(w, in, active, shape.words));
}

template <Space S>
Step store(Warp& w, const Instr& in, uint32_t active) {
  const Operand& value = in.ops[1];
  Shape shape = shape_of(in, value);
  const bool is_strong = strong(in);
  if (S == Space::shared_cta && !is_strong && shape.parts == 1 &&
      store_together(w, in, active, shape.bytes, shape.words))
    return Step::next;
  if ((S == Space::global || S == Space::generic) && !is_strong && shape.parts == 1 &&
      store_global_together(w, in, active, shape.bytes, shape.words))
    return Step::next;
  Warp::Row scratch[8];
  const uint64_t* words[8];
  uint32_t known[8];  // lanes with a value
  for (uint32_t e = 0; e < shape.words; ++e) {
    const Operand& op = element(value, shape.parts == 2 ? 0 : e);
    known[e] = may_lack_value(S) && shape.parts == 1 ? w.defined(op, active) : active;
    words[e] = w.source(op, known[e], scratch[e], shape.parts == 2 ? e : 0);
  }
  Bytes to[32];
  for_lanes(active, [&](uint32_t i) {
    const Place p = locate(w, i, S, w.address(in.ops[0], i), shape.bytes * shape.words, "store");
    uint8_t stored[64];
    for (uint32_t e = 0; e < shape.words; ++e)
      memcpy(stored + e * shape.bytes, &words[e][i], shape.bytes);
    to[i] = p.open(in, shape.bytes * shape.words, is_strong ? Use::atomic : Use::write, stored);
    for (uint32_t e = 0; e < shape.words; ++e) {
      if (known[e] >> i & 1)
        to[i].write(e * shape.bytes, shape.bytes, words[e][i], "store");
      else
        to[i].forget(e * shape.bytes, shape.bytes, "store",
                     why_stored_none(w, in, element(value, e), p, active & ~known[e]));
    }
  });
  count(w, to, active, shape.bytes * shape.words, &Counters::global_store_bytes);
  return Step::next;
}

template <template <Space> class Op>
Exec by_space(const Instr& in) {
  switch (space_named(in)) {
    case Space::global: return Op<Space::global>::exec;
    case Space::shared_cta: return Op<Space::shared_cta>::exec;
    case Space::shared_cluster: return Op<Space::shared_cluster>::exec;
    case Space::param: return Op<Space::param>::exec;
    case Space::local: return Op<Space::local>::exec;
    case Space::constant: return Op<Space::constant>::exec;
    case Space::generic: return Op<Space::generic>::exec;
  }
  return nullptr;
}

template <Space S>
struct Load {
  static constexpr Exec exec = load<S>;
};
template <Space S>
struct Store {
  static constexpr Exec exec = store<S>;
};

// A hint, and no fault on hardware whatever the address is; reading the address register is
// checked.
Step hint(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) { w.address(in.ops[0], i); });
  return Step::next;
}

// The encoding of a policy is opaque; any value does, as nothing reads it.
Step make_policy(Warp& w, const Instr& in, uint32_t active) {
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [=](uint32_t i) { d[i] = 0x10F0000000000000; });
  return Step::next;
}

}  // namespace

Exec bind_ld(const Instr& in, std::string&) { return by_space<Load>(in); }

Exec bind_st(const Instr& in, std::string& why) {
  if (in.has(Mod::param)) return refuse(why, "parameters of calls are not executed");
  return by_space<Store>(in);
}

Exec bind_prefetch(const Instr&, std::string&) { return hint; }
Exec bind_createpolicy(const Instr&, std::string&) { return make_policy; }
Exec bind_createpolicy_cvt(const Instr&, std::string&) { return make_policy; }

}  // namespace emu::ops
