// SPDX-License-Identifier: MIT
// mbarrier.*: every active lane is a thread of its own.
#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/emulator/machine/mbarrier_access.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/op/binders.h"

namespace emu::ops {
namespace {

using glue::Target;
using ptx::Instr;
using ptx::Mod;
using ptx::Step;

// All lanes of a warp may execute one mbarrier.init: kernels known to be right do, and the barrier
// ends up the same. A second instruction is misuse.
Step init(Warp& warp, const Instr& in, uint32_t active) {
  std::vector<std::pair<uint32_t, uint32_t>> done;
  glue::each_lane(active, [&](uint32_t lane) {
    const Target t = glue::target(warp, in, in.ops[0], lane);
    const std::pair<uint32_t, uint32_t> one{t.address, uint32_t(warp.get(in.ops[1], lane))};
    const bool again = std::find(done.begin(), done.end(), one) != done.end();
    MbarrierAccess::init(t, one.second, lane, again);
    if (!again) done.push_back(one);
  });
  return Step::next;
}

Step inval(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    MbarrierAccess::inval(glue::target(warp, in, in.ops[0], lane));
  });
  return Step::next;
}

// Without a scope ptxas 13.0 takes .cta, even for a barrier in another CTA.
Scope scope_of(const Instr& in) { return in.has(Mod::cluster) ? Scope::cluster : Scope::cta; }

// Lanes that do the same to a barrier in one phase of it.
struct Company {
  Target barrier{};
  uint64_t phase = 0;
  uint32_t lanes = 0;

  // Adds the lanes. If their barrier or phase differs, it first calls f for the lanes so far.
  template <class F>
  void add(const Target& t, uint64_t at, uint32_t more, F f) {
    if (lanes && (t.cta != barrier.cta || t.address != barrier.address || at != phase)) end(f);
    barrier = t;
    phase = at;
    lanes |= more;
  }
  template <class F>
  void end(F f) {
    if (lanes) f(*this);
    lanes = 0;
  }
};

// `each` does the work on one lane's barrier.
template <bool Arrives, class F>
Step on_barrier(Warp& warp, const Instr& in, size_t address_op, uint32_t active, F each) {
  const Observers& observers = warp.cta.cluster.observers;
  Company company;
  const auto hand_on = [&](const Company& c) {
    observers.tell(event::Arrival{*c.barrier.cta, c.barrier.address, c.phase, c.lanes, scope_of(in),
                                  in.has(Mod::relaxed)});
  };
  glue::each_lane(active, [&](uint32_t lane) {
    const Target t = glue::target(warp, in, in.ops[address_op], lane);
    glue::require_running(warp.cta, *t.cta, in.opcode);
    MbarrierTable& table = MbarrierAccess::use(t, 1u << lane);
    if (Arrives)
      company.add(t, t.cta->mbarriers.state(t.address, in.opcode).phase, 1u << lane, hand_on);
    each(table, t.address, lane);
  });
  company.end(hand_on);
  ++warp.cta.cluster.progress;
  return Step::next;
}

Step arrive(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<true>(
      warp, in, 1, active, [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
        const uint32_t n = in.ops.size() > 2 ? uint32_t(warp.get(in.ops[2], lane)) : 1;
        warp.set(in.ops[0], lane, table.arrive(at, n));
      });
}

// .noComplete: the arrival must not end the phase (PTX ISA 9.7.13.15.13).
Step arrive_no_complete(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<true>(
      warp, in, 1, active, [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
        const uint32_t n = uint32_t(warp.get(in.ops[2], lane));
        const MbarrierTable::State& s = table.state(at, in.opcode);
        if (n >= s.pending)
          throw Fault(FaultKind::barrier_misuse,
                      format("%s.noComplete of %u would complete the phase (", in.opcode, n) +
                          table.describe(at) + ")");
        const bool drop = std::string_view(in.opcode) == "mbarrier.arrive_drop";
        warp.set(in.ops[0], lane, drop ? table.arrive_drop(at, n) : table.arrive(at, n));
      });
}

Step arrive_drop(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<true>(
      warp, in, 1, active, [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
        const uint32_t n = in.ops.size() > 2 ? uint32_t(warp.get(in.ops[2], lane)) : 1;
        if (in.has(Mod::expect_tx)) table.expect_tx(at, n);
        warp.set(in.ops[0], lane, table.arrive_drop(at, in.has(Mod::expect_tx) ? 1 : n));
      });
}

Step pending_count(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    warp.set(in.ops[0], lane, MbarrierTable::pending_of(warp.get(in.ops[1], lane)));
  });
  return Step::next;
}

Step arrive_expect_tx(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<true>(warp, in, 1, active,
                          [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
                            const uint32_t bytes = uint32_t(warp.get(in.ops[2], lane));
                            warp.set(in.ops[0], lane, table.arrive_expect_tx(at, bytes));
                          });
}

Step expect_tx(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<false>(warp, in, 0, active,
                           [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
                             table.expect_tx(at, uint32_t(warp.get(in.ops[1], lane)));
                           });
}

Step complete_tx(Warp& warp, const Instr& in, uint32_t active) {
  return on_barrier<false>(warp, in, 0, active,
                           [&](MbarrierTable& table, uint32_t at, uint32_t lane) {
                             table.complete_tx(at, uint32_t(warp.get(in.ops[1], lane)));
                           });
}

// The mbarrier and phase for which mbarrier.try_wait has suspended the threads of a path.
struct Suspended {
  Target barrier{};
  uint64_t phase = 0;  // the one they wait for

  // However late they run again, the end of that phase has woken them (PTX ISA, mbarrier.try_wait:
  // "resumes execution when the specified phase completes"), also when another phase of the same
  // parity has begun since.
  bool woken(const Target& t, const char* who) const {
    return t.cta == barrier.cta && t.address == barrier.address &&
           t.cta->mbarriers.state(t.address, who).phase > phase;
  }
  uint64_t since(const Target& t, const Instr& in) const {
    const bool here = t.cta == barrier.cta && t.address == barrier.address;
    return here && in.has(Mod::parity) ? phase : 0;
  }
};

// What a wait names: a phase's parity, of which bit 0 counts, or a state.
uint64_t phase_named(const Warp& warp, const Instr& in, uint32_t lane) {
  const uint64_t value = warp.get(in.ops[2], lane);
  return in.has(Mod::parity) ? value & 1 : value;
}

// The phase of this parity that the warp has not waited for yet, by its own count.
uint64_t awaited(const Warp& warp, const Target& t, uint64_t parity) {
  const auto seen = warp.phases_seen.find(t.address);
  const uint64_t next = seen == warp.phases_seen.end() ? 0 : seen->second;
  return next + (next % 2 != parity);
}

// A wait that has ended advances the warp's count.
void count(Warp& warp, const Instr& in, const Target& t, uint64_t parity) {
  const uint64_t now = t.cta->mbarriers.state(t.address, in.opcode).phase;
  const uint64_t counted = in.has(Mod::parity) ? awaited(warp, t, parity) + 1 : now;
  warp.phases_seen[t.address] = std::min(counted, now);
}

// How many phases are over as far as the answer of a wait tells. A wait that was suspended may
// return late, when a further phase is over.
uint64_t phases_over(const Instr& in, const Target& t, uint64_t phase) {
  if (!in.has(Mod::parity)) return (phase >> 20) + 1;
  const uint64_t over = t.cta->mbarriers.state(t.address, in.opcode).phase;
  return over && ((over - 1) & 1) != phase ? over - 1 : over;
}

bool is_over(const Instr& in, const Target& t, uint64_t phase, const Suspended& suspended) {
  if (suspended.woken(t, in.opcode)) return true;
  return in.has(Mod::parity) ? t.cta->mbarriers.test_parity(t.address, uint32_t(phase))
                             : t.cta->mbarriers.test_state(t.address, phase);
}

// The lanes whose phase is over.
uint32_t passed(Warp& warp, const Instr& in, uint32_t active, const Suspended& suspended = {}) {
  uint32_t lanes = 0;
  const Observers& observers = warp.cta.cluster.observers;
  Company company;
  const auto observe = [&](const Company& c) {
    observers.tell(event::PhaseOver{*c.barrier.cta, c.barrier.address, c.phase, c.lanes,
                                    scope_of(in), in.has(Mod::relaxed),
                                    suspended.since(c.barrier, in)});
  };
  // What one of them finds, all find that name the same barrier and phase.
  const bool alike = warp.alike(in.ops[1], active) && warp.alike(in.ops[2], active);
  glue::each_lane(alike ? active & -active : active, [&](uint32_t lane) {
    const Target t = glue::target(warp, in, in.ops[1], lane);
    const uint64_t phase = phase_named(warp, in, lane);
    const uint32_t who = alike ? active : 1u << lane;
    const bool over = is_over(in, t, phase, suspended);
    MbarrierAccess::use(t, who);
    if (over) company.add(t, phases_over(in, t, phase), who, observe);
    if (over && !lanes) count(warp, in, t, phase);  // its lanes count as one
    if (over) lanes |= who;
  });
  company.end(observe);
  return lanes;
}

// A try_wait whose time is up answers false although its phase goes on. Each try_wait of a warp
// does so once: in the order `latest` as soon as it would wait, in `random` at a random time.
bool times_out(Warp& warp, const Instr& in) {
  return !warp.timed_out.count(&in) && warp.cta.cluster.async.late() &&
         warp.timed_out.insert(&in).second;
}

void answer(Warp& warp, const Instr& in, uint32_t active, uint32_t lanes) {
  glue::each_lane(active, [&](uint32_t lane) { warp.set(in.ops[0], lane, lanes >> lane & 1); });
}

Step test_wait(Warp& warp, const Instr& in, uint32_t active) {
  ++warp.cta.counters.barrier_tries;
  const uint32_t lanes = passed(warp, in, active);
  answer(warp, in, active, lanes);
  return lanes ? Step::next : warp.poll(in, lanes);
}

// If it is tried again while all its lanes wait for one phase that is not over, it finds what it
// found before, and is not evaluated. Suspends while no lane's phase is over; false is a legal
// answer for the others (PTX: try_wait may return before the phase completes).
Step try_wait(Warp& warp, const Instr& in, uint32_t active) {
  const Target first = glue::target(warp, in, in.ops[1], uint32_t(std::countr_zero(active)));
  // 1 + the phase of the first lane's barrier when the path was suspended here.
  uint64_t& since = warp.flow.here().ticket;
  auto& here = warp.flow.here();
  const MbarrierTable& table = first.cta->mbarriers;
  const bool still = since && here.inits == table.inits() &&
                     table.state(first.address, in.opcode).phase == since - 1;
  uint32_t lanes = 0;
  if (!still) lanes = passed(warp, in, active, since ? Suspended{first, since - 1} : Suspended{});
  if (lanes == 0 && !warp.cta.cluster.waits_expire && !times_out(warp, in)) {
    if (!since) ++warp.cta.counters.barrier_waits;
    since = 1 + table.state(first.address, in.opcode).phase;
    const bool alike = warp.alike(in.ops[1], active) && warp.alike(in.ops[2], active);
    here.inits = alike ? table.inits() : 0;
    warp.waiting = [&table, at = first.address] { return table.describe(at); };
    here.waits_at = first.cta->shared_address(first.address);
    return Step::blocked;
  }
  since = 0;
  here.waits_at = Fault::none;
  ++warp.cta.counters.barrier_tries;
  answer(warp, in, active, lanes);
  return Step::next;
}

}  // namespace

ptx::Exec bind_mbarrier_init(const Instr&, std::string&) { return init; }
ptx::Exec bind_mbarrier_inval(const Instr&, std::string&) { return inval; }
ptx::Exec bind_mbarrier_arrive(const Instr& in, std::string&) {
  if (in.has(Mod::noComplete)) return arrive_no_complete;
  return in.has(Mod::expect_tx) ? arrive_expect_tx : arrive;
}
ptx::Exec bind_mbarrier_arrive_drop(const Instr& in, std::string&) {
  return in.has(Mod::noComplete) ? arrive_no_complete : arrive_drop;
}
ptx::Exec bind_mbarrier_pending_count(const Instr&, std::string&) { return pending_count; }
ptx::Exec bind_mbarrier_expect_tx(const Instr&, std::string&) { return expect_tx; }
ptx::Exec bind_mbarrier_complete_tx(const Instr&, std::string&) { return complete_tx; }
ptx::Exec bind_mbarrier_test_wait(const Instr&, std::string&) { return test_wait; }
ptx::Exec bind_mbarrier_try_wait(const Instr&, std::string&) { return try_wait; }

}  // namespace emu::ops
