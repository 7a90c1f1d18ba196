// SPDX-License-Identifier: MIT
// Calls of routines (PTX ISA 9.7.12.5), and memory of the stack (9.7.17).
#include <algorithm>

#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

using ptx::CallSite;
using ptx::Routine;

bool fits(const std::vector<Routine::Parameter>& formal,
          const std::vector<CallSite::Argument>& actual) {
  bool same = formal.size() == actual.size();
  for (size_t i = 0; same && i < formal.size(); ++i)
    same = formal[i].bytes == actual[i].bytes && formal[i].align == actual[i].align;
  return same;
}

const Routine& routine_at(const Warp& w, const CallSite& site, uint64_t address) {
  for (const Routine& r : w.cta.cluster.launch.function->routines) {
    if (r.address != address) continue;
    if (fits(r.results, site.results) && fits(r.parameters, site.arguments)) return r;
    throw Fault(
        FaultKind::illegal_instruction,
        format("a call of %s, whose parameters are not those of the prototype", r.name.c_str()));
  }
  throw Fault(FaultKind::illegal_address, format("a call of 0x%llx, which is no function's address",
                                                 (unsigned long long)address));
}

void enter(Warp& w, const Instr& in, uint32_t lanes, const Routine& routine) {
  const uint32_t behind = w.flow.here().pc + 1;
  for_lanes(lanes, [&](uint32_t i) { w.calls.enter(w, i, in, behind, routine); });
  w.flow.call(lanes, routine.start);
}

Step call(Warp& w, const Instr& in, uint32_t active) {
  enter(w, in, active, w.cta.cluster.launch.function->routines[in.call->routine]);
  return Step::jumped;
}

// Lanes that call something else stay, and call it next.
Step call_indirect(Warp& w, const Instr& in, uint32_t active) {
  const uint64_t first = w.get(in.ops[0], uint32_t(std::countr_zero(active)));
  uint32_t others = 0;
  for_lanes(active, [&](uint32_t i) { others |= uint32_t(w.get(in.ops[0], i) != first) << i; });
  const Routine& routine = routine_at(w, *in.call, first);
  if (others) w.flow.split(others);
  enter(w, in, active & ~others, routine);
  return Step::jumped;
}

Step land(Warp&, const Instr&, uint32_t) { return Step::next; }

// Each to its caller.
Step leave(Warp& w, const Instr&, uint32_t active) {
  uint32_t to[32];
  for_lanes(active, [&](uint32_t i) { to[i] = w.calls.leave(w, i); });
  for (uint32_t left = active; left;) {
    uint32_t together = 0;
    const uint32_t pc = to[std::countr_zero(left)];
    for_lanes(left, [&](uint32_t i) { together |= uint32_t(to[i] == pc) << i; });
    w.flow.go_to(together, pc);
    left &= ~together;
  }
  return Step::jumped;
}

Step allocate(Warp& w, const Instr& in, uint32_t active) {
  constexpr uint32_t least = 8;
  const uint32_t align = in.ops.size() > 2 ? std::max(least, uint32_t(in.ops[2].imm)) : least;
  for_lanes(active, [&](uint32_t i) {
    w.set(in.ops[0], i, w.calls.allocate(w, i, w.get(in.ops[1], i), align));
  });
  return Step::next;
}

Step save_top(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) { w.set(in.ops[0], i, w.calls.top(i)); });
  return Step::next;
}

Step restore_top(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) { w.calls.cut(i, w.get(in.ops[0], i)); });
  return Step::next;
}

}  // namespace

Exec bind_call(const Instr& in, std::string&) { return in.ops.empty() ? call : call_indirect; }
Exec bind_landing(const Instr&, std::string&) { return land; }
Exec bind_leave(const Instr&, std::string&) { return leave; }

Exec bind_alloca(const Instr& in, std::string& why) {
  if (in.ops.size() > 2 && !std::has_single_bit(uint64_t(in.ops[2].imm)))
    return refuse(why, "an alignment is a power of two");
  return allocate;
}
Exec bind_stacksave(const Instr&, std::string&) { return save_top; }
Exec bind_stackrestore(const Instr&, std::string&) { return restore_top; }

}  // namespace emu::ops
