// SPDX-License-Identifier: MIT
// Instructions by which the lanes of a warp exchange values or meet (PTX ISA 9.7.9.6, 9.7.13).
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

void set_predicate(Warp& w, const Operand& op, uint32_t lanes, uint32_t value) {
  uint64_t* d = w.destination(op, lanes);
  for_lanes(lanes, [=](uint32_t i) { d[i] = value >> i & 1; });
}

// The lane that a lane reads from, and whether that is inside its segment (PTX ISA, shfl.sync).
struct Partner {
  uint32_t lane;
  bool inside;
};
template <Mod Mode>
Partner partner(uint32_t lane, uint32_t b, uint32_t c) {
  uint32_t distance = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  uint32_t first = lane & segment, last = first | (clamp & ~segment);
  if (Mode == Mod::up) return {lane - distance, int32_t(lane - distance) >= int32_t(last)};
  if (Mode == Mod::down) return {lane + distance, lane + distance <= last};
  if (Mode == Mod::bfly) return {lane ^ distance, (lane ^ distance) <= last};
  return {first | (distance & ~segment), (first | (distance & ~segment)) <= last};
}

// shfl.sync d{|p}, a, b, c, membermask. What a lane that takes no part would have given has no
// value, so the reader's register has none either.
template <Mod Mode>
Step shuffle(Warp& w, const Instr& in, uint32_t active) {
  size_t at = in.ops.size() - 4;
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops[at + 3], active, otherwise);
  if (!lanes) return otherwise;
  Warp::Row sa, sb, sc;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[at], lanes, sa, unknown);
  const uint64_t* b = w.source(in.ops[at + 1], lanes, sb);
  const uint64_t* c = w.source(in.ops[at + 2], lanes, sc);
  uint32_t value[32], inside = 0, absent = 0;
  Warp::Unknown brought{0, unknown.of};
  for_lanes(lanes, [&](uint32_t i) {
    Partner p = partner<Mode>(i, uint32_t(b[i]), uint32_t(c[i]));
    uint32_t from = p.inside ? p.lane : i;
    inside |= uint32_t(p.inside) << i;
    absent |= uint32_t(!(lanes >> from & 1)) << i;
    brought.lanes |= (unknown.lanes >> from & 1) << i;
    value[i] = lanes >> from & 1 ? uint32_t(a[from]) : 0;
  });
  uint64_t* d = w.result(in.ops[0], lanes, brought);
  for_lanes(lanes, [&](uint32_t i) { d[i] = value[i]; });
  if (absent) w.undefine(in.ops[0], absent);
  if (at == 2) set_predicate(w, in.ops[1], lanes, inside);
  return Step::next;
}

// vote.sync d, a, membermask
template <Mod Mode>
Step vote(Warp& w, const Instr& in, uint32_t active) {
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops[2], active, otherwise);
  if (!lanes) return otherwise;
  uint32_t yes = w.pred_mask(in.ops[1], lanes);
  uint64_t result = Mode == Mod::ballot ? yes
                    : Mode == Mod::all  ? yes == lanes
                    : Mode == Mod::any  ? yes != 0
                                        : yes == 0 || yes == lanes;
  uint64_t* d = w.destination(in.ops[0], lanes);
  for_lanes(lanes, [=](uint32_t i) { d[i] = result; });
  return Step::next;
}

// elect.sync d|p, membermask: PTX does not say which lane is elected, only that it is the same one
// each time.
Step elect(Warp& w, const Instr& in, uint32_t active) {
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops[2], active, otherwise);
  if (!lanes) return otherwise;
  uint32_t leader = uint32_t(std::countr_zero(lanes));
  uint64_t* d = w.destination(in.ops[0], lanes);
  for_lanes(lanes, [=](uint32_t i) { d[i] = leader; });
  set_predicate(w, in.ops[1], lanes, 1u << leader);
  return Step::next;
}

Step meet(Warp& w, const Instr& in, uint32_t active) {
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops[0], active, otherwise, true);
  if (!lanes) return otherwise;
  w.cta.cluster.observers.tell(event::WarpSync{lanes});
  return Step::next;
}

Step active_lanes(Warp& w, const Instr& in, uint32_t active) {
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [=](uint32_t i) { d[i] = active; });
  return Step::next;
}

}  // namespace

Exec bind_shfl_sync(const Instr& in, std::string&) {
  if (in.has(Mod::up)) return shuffle<Mod::up>;
  if (in.has(Mod::down)) return shuffle<Mod::down>;
  return in.has(Mod::bfly) ? shuffle<Mod::bfly> : shuffle<Mod::idx>;
}

Exec bind_vote_sync(const Instr& in, std::string&) {
  if (in.has(Mod::all)) return vote<Mod::all>;
  if (in.has(Mod::any)) return vote<Mod::any>;
  return in.has(Mod::ballot) ? vote<Mod::ballot> : vote<Mod::uni>;
}

Exec bind_elect_sync(const Instr&, std::string&) { return elect; }
Exec bind_bar_warp_sync(const Instr&, std::string&) { return meet; }
Exec bind_activemask(const Instr&, std::string&) { return active_lanes; }

}  // namespace emu::ops
