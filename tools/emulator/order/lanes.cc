// SPDX-License-Identifier: MIT
// What the lanes of a warp know together and each by itself. See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/order/hazards.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace emu {

namespace {

constexpr uint32_t all_at_once = 32;  // of Party::fences

// All but what is of the manual alone.
void join_seen(Knowledge& to, const Knowledge& from) {
  to.seen.join(from.seen);
  to.fenced.join(from.fenced);
  to.fenced_global.join(from.fenced_global);
  join(to.mapped, from.mapped);
  to.relaxed.join(from.relaxed);
  to.fresh.join(from.fresh);
  to.inits.join(from.inits);
  to.flushed.join(from.flushed);
  to.loaded.join(from.loaded);
  for (const auto& [cluster, far] : from.others) {
    Far& f = to.others[cluster];
    f.seen.join(far.seen);
    f.fenced.join(far.fenced);
    f.flushed.join(far.flushed);
    f.loaded.join(far.loaded);
    join(f.mapped, far.mapped);
  }
}

// Of the order of tcgen05 work a warp has one state.
void join_acquired(Knowledge& to, const Knowledge& from) {
  join_seen(to, from);
  to.strict.join(from.strict);
  for (const auto& [cluster, far] : from.others) to.others[cluster].strict.join(far.strict);
}

}  // namespace

bool Hazards::whole(uint32_t lanes) const { return !(warp_->live() & ~lanes); }

Knowledge& Hazards::own(Party& p, uint32_t lane) {
  if (!p.own[lane]) p.own[lane] = std::make_unique<Knowledge>();
  p.owners |= 1u << lane;
  p.fresh |= 1u << lane;
  return *p.own[lane];
}

Hazards::Fences& Hazards::fences(Party& p, uint32_t lane) {
  if (!p.fences[lane]) p.fences[lane] = std::make_unique<Fences>();
  if (lane != all_at_once) p.fencing |= 1u << lane;
  p.fenced = true;
  return *p.fences[lane];
}

Knowledge Hazards::known(const Party& p, uint32_t lanes) const {
  Knowledge k = p.all;
  for_lanes(lanes & p.owners, [&](uint32_t lane) { k.join(*p.own[lane]); });
  k.tensor = p.tensor_ready;
  k.tensor.join(p.tensor_arrived);  // who stands between the two fences needs none of its own
  return k;
}

// The accesses of the lanes up to an epoch. To exit is no release: a barrier that goes on without a
// thread orders what the others have done (PTX ISA 9.7.12.7, 9.7.13.1).
void Hazards::add_accesses(const Party& p, uint32_t lanes, uint32_t time, Clock& to) const {
  if (!(warp_->lanes & ~lanes)) return to.raise(number(p), time);
  for_lanes(lanes, [&](uint32_t lane) { to.raise_lane(number(p), lane, time); });
}

// The operations that the lanes have waited for.
void Hazards::add_queues(const Party& p, uint32_t lanes, Clock& to) {
  for_lanes(lanes & p.queuing, [&](uint32_t lane) {
    p.lanes[lane].queues([&](const Queue& q) { to.raise(q.agent, q.done); });
  });
}

// What others learn by it ends here: the warp's later accesses carry a later time.
Knowledge Hazards::release(Party& p, uint32_t lanes) {
  Knowledge handed = known(p, lanes);
  for (Clock* clock : {&handed.seen, &handed.strict}) {
    add_accesses(p, lanes, p.time, *clock);
    add_queues(p, lanes, *clock);
  }
  ++p.time;
  return handed;
}

bool Hazards::has_fenced(const Party& p, uint32_t lane) {
  const auto& together = p.fences[all_at_once];
  return together || (p.fences[lane] && p.fences[lane]->times[0]);
}

// What the last fences of the lanes have released.
Knowledge Hazards::fenced(const Party& p, uint32_t lanes, Scope scope) const {
  const size_t s = size_t(scope);
  Knowledge handed;
  uint32_t together = 0;
  if (const auto& f = p.fences[all_at_once]) {
    handed = f->fenced[s];
    together = f->times[s];
  }
  const auto add = [&](uint32_t of, uint32_t time) {
    for (Clock* clock : {&handed.seen, &handed.strict}) add_accesses(p, of, time, *clock);
  };
  if (together) add(lanes, together);
  for_lanes(lanes & p.fencing, [&](uint32_t lane) {
    const Fences& f = *p.fences[lane];
    handed.join(f.fenced[s]);
    if (f.times[s] > together) add(1u << lane, f.times[s]);
  });
  return handed;
}

Knowledge Hazards::release_relaxed(const Party& p, uint32_t lanes) const {
  Knowledge handed = fenced(p, lanes, Scope::cluster);
  handed.join(of_tensor(known(p, lanes)));
  return handed;
}

// At a barrier: what the lanes' fences have made visible to the GPU, and what their relaxed loads
// have shown to them and no fence has followed yet.
void Hazards::add_fences(const Party& p, uint32_t lanes, Knowledge& handed) const {
  const auto& together = p.fences[all_at_once];
  if (!together && !(p.fencing & lanes)) return;
  const Knowledge f = fenced(p, lanes, Scope::gpu);
  handed.flushed.join(f.seen);
  for (const auto& [cluster, far] : f.others) handed.others[cluster].flushed.join(far.seen);
  const auto show = [&](const Fences& of) {
    for (const Knowledge& k : of.loaded) {
      handed.loaded.join(k.seen);
      for (const auto& [cluster, far] : k.others) handed.others[cluster].loaded.join(far.seen);
    }
  };
  if (together) show(*together);
  for_lanes(p.fencing & lanes, [&](uint32_t lane) { show(*p.fences[lane]); });
}

namespace {

bool any_flushed(const Knowledge& k) {
  return !k.flushed.empty() || std::any_of(k.others.begin(), k.others.end(), [](const auto& far) {
    return !far.second.flushed.empty();
  });
}

void flush(const Knowledge& from, Knowledge& to) {
  to.seen.join(from.flushed);
  to.flushed.join(from.flushed);
  for (const auto& [cluster, far] : from.others) {
    to.others[cluster].seen.join(far.flushed);
    to.others[cluster].flushed.join(far.flushed);
  }
}

void finish(const Knowledge& from, Knowledge& to) {
  to.seen.join(from.loaded);
  for (const auto& [cluster, far] : from.others) {
    if (far.loaded.empty()) continue;
    Far& f = to.others[cluster];
    f.loaded.join(far.loaded);
    f.seen.join(far.loaded);
  }
}

}  // namespace

bool Hazards::has_flushed(const Party& p, uint32_t lane) {
  return any_flushed(p.all) || (p.own[lane] && any_flushed(*p.own[lane]));
}

// What a relaxed store of the lane hands on beside what its own fence has released.
void Hazards::add_flushed(const Party& p, uint32_t lane, Knowledge& handed) {
  flush(p.all, handed);
  if (p.own[lane]) flush(*p.own[lane], handed);
}

// A fence behind a barrier, before which another thread has loaded the flag.
void Hazards::finish_loads(Party& p, uint32_t lanes) {
  const bool any = !p.all.loaded.empty() ||
                   std::any_of(p.all.others.begin(), p.all.others.end(),
                               [](const auto& far) { return !far.second.loaded.empty(); });
  if (whole(lanes)) {
    if (any) finish(p.all, p.all);
    lanes &= p.owners;
  }
  for_lanes(lanes, [&](uint32_t lane) {
    if (any) finish(p.all, own(p, lane));
    if (p.owners >> lane & 1) finish(*p.own[lane], own(p, lane));
  });
}

// tcgen05.fence composes with any synchronisation that orders execution, relaxed ones too
// (9.7.16.6.3), so these carry the order of tcgen05 work but not that of memory accesses.
Knowledge Hazards::of_tensor(const Knowledge& k) const {
  Knowledge part;
  for (uint32_t agent : tensor_agents_) {
    part.seen.raise(agent, k.seen[agent]);
    part.strict.raise(agent, k.strict[agent]);
    part.tensor.raise(agent, k.tensor[agent]);
  }
  return part;
}

void Hazards::acquire(Party& p, uint32_t lanes, const Knowledge& handed) {
  p.tensor_arrived.join(handed.tensor);
  if (whole(lanes)) return join_acquired(p.all, handed);
  for_lanes(lanes, [&](uint32_t lane) { join_acquired(own(p, lane), handed); });
}

// An acquire beyond the CTA, before which the SM may have kept bytes of global memory: ptxas 13.0
// makes it CCTL.IVALL behind the wait.
void Hazards::refresh(Party& p, uint32_t lanes) {
  if (cluster_.ctas.size() == 1) return;
  if (whole(lanes)) p.all.fresh.join(p.all.seen);
  for_lanes(whole(lanes) ? p.owners : lanes, [&](uint32_t lane) {
    Knowledge& k = own(p, lane);
    k.fresh.join(p.all.seen);
    k.fresh.join(k.seen);
  });
}

// It is left to the next fence of the thread.
void Hazards::load_relaxed(Party& p, uint32_t lanes, Scope scope, const Knowledge& handed) {
  if (whole(lanes)) return fences(p, all_at_once).loaded[size_t(scope)].join(handed);
  for_lanes(lanes, [&](uint32_t lane) { fences(p, lane).loaded[size_t(scope)].join(handed); });
}

void Hazards::learn(Party& p, uint32_t lanes, uint32_t agent, uint32_t time) {
  if (agent == nobody) return;
  const auto raise = [=](Knowledge& k) {
    k.seen.raise(agent, time);
    k.strict.raise(agent, time);
  };
  if (whole(lanes)) return raise(p.all);
  for_lanes(lanes, [&](uint32_t lane) { raise(own(p, lane)); });
}

uint32_t Hazards::known_time(const Party& p, uint32_t agent) {
  uint32_t time = p.all.seen[agent];
  for_lanes(p.owners, [&](uint32_t l) { time = std::max(time, p.own[l]->seen[agent]); });
  return time;
}

// ---- lanes that meet -----------------------------------------------------------------------------

void Hazards::meet(Party& p, uint32_t lanes, bool by_the_manual) {
  const auto join = by_the_manual ? join_acquired : join_seen;
  const bool all = whole(lanes);
  Knowledge apart;
  Knowledge& together = all ? p.all : apart;
  const uint32_t news = by_the_manual || !all ? p.owners : p.fresh;
  for_lanes(lanes & news, [&](uint32_t lane) { join(together, *p.own[lane]); });
  for (Clock* clock : {&together.seen, &together.strict}) {
    if (clock == &together.strict && !by_the_manual) break;
    add_accesses(p, lanes, p.time, *clock);
    add_queues(p, lanes, *clock);
  }
  ++p.time;
  if (!all) {
    for_lanes(lanes, [&](uint32_t lane) { join(own(p, lane), apart); });
    return;
  }
  if (p.fenced) meet_fences(p);
  p.fresh = 0;
  if (by_the_manual) p.owners = 0;
  if (by_the_manual)
    for (auto& k : p.own) k.reset();
}

// A fence and the access that it strengthens are one thread's; those of two lanes that have met in
// between do as well on hardware.
void Hazards::meet_fences(Party& p) {
  Fences& together = fences(p, all_at_once);
  for (size_t s = 0; s < std::size(together.fenced); ++s) {
    Clock& accesses = together.fenced[s].seen;
    for_lanes(p.fencing, [&](uint32_t lane) {
      const Fences& f = *p.fences[lane];
      join_seen(together.fenced[s], f.fenced[s]);
      join_seen(together.loaded[s], f.loaded[s]);
      accesses.raise_lane(number(p), lane, f.times[s]);
    });
    add_accesses(p, warp_->live(), together.times[s], accesses);
  }
  p.fenced = false;
}

// ---- fences --------------------------------------------------------------------------------------

void Hazards::fence(Scope scope) {
  Party& p = me();
  const bool all = whole(active_);
  Fences& together = fences(p, all_at_once);
  for (size_t s = 0; s <= size_t(scope); ++s) {
    acquire(p, active_, all ? std::exchange(together.loaded[s], {}) : together.loaded[s]);
    for_lanes(active_ & p.fencing, [&](uint32_t lane) {
      acquire(p, 1u << lane, std::exchange(p.fences[lane]->loaded[s], {}));
    });
    if (all) {
      together.fenced[s] = known(p, 0);
      together.times[s] = p.time;
    }
    for_lanes(all ? active_ & (p.owners | p.queuing) : active_, [&](uint32_t lane) {
      Fences& f = fences(p, lane);
      f.fenced[s] = known(p, 1u << lane);
      add_queues(p, 1u << lane, f.fenced[s].seen);
      add_queues(p, 1u << lane, f.fenced[s].strict);
      f.times[s] = p.time;
    });
  }
  if (scope == Scope::gpu) finish_loads(p, active_);
  if (scope >= Scope::cluster) refresh(p, active_);
  ++p.time;
}

// A proxy fence: what a lane has seen when it executes it is behind it, in whichever lane it was.
// `here` and `far` hand the clocks of a Knowledge, of another cluster's part of one, to a function.
template <class Here, class There>
void Hazards::carry(uint32_t lanes, Here here, There far) {
  Party& p = me();
  const auto pass = [&](Knowledge& to, const Knowledge& from) {
    here(to, [&](Clock& clock) { clock.join(from.seen); });
    for (const auto& [cluster, f] : from.others)
      far(to.others[cluster], [&, &seen = f.seen](Clock& clock) { clock.join(seen); });
  };
  const auto add = [&](Knowledge& to, uint32_t of) {
    here(to, [&](Clock& clock) {
      add_accesses(p, of, p.time, clock);
      add_queues(p, of, clock);
    });
  };
  if (whole(lanes)) {
    pass(p.all, p.all);
    for_lanes(p.owners, [&](uint32_t lane) { pass(own(p, lane), *p.own[lane]); });
    add(p.all, lanes);
  } else {
    for_lanes(lanes, [&](uint32_t lane) {
      Knowledge& mine = own(p, lane);
      pass(mine, mine);
      pass(mine, p.all);
      add(mine, 1u << lane);
    });
  }
  ++p.time;
}

void Hazards::fence_proxy(bool shared, bool global) {
  carry(
      active_,
      [=](Knowledge& k, auto f) {
        if (shared) f(k.fenced);
        if (global) f(k.fenced_global);
      },
      [=](Far& far, auto f) {
        if (global) f(far.fenced);
      });
}

void Hazards::fence_tensor_map(uint64_t address, uint32_t lanes) {
  const auto mapped = [=](auto& k, auto f) { f(k.mapped[address]); };
  carry(lanes, mapped, mapped);
}

}  // namespace emu
