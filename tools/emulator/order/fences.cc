// SPDX-License-Identifier: MIT
// Fences, and what they make of relaxed accesses on either side of them (PTX ISA 8.8). See
// parties.h.
#include "tools/emulator/order/parties.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace emu::order {

Fences& Parties::fences(Party& p, uint32_t lane) {
  if (!p.fences[lane]) p.fences[lane] = std::make_unique<Fences>();
  if (lane != Party::all_at_once) p.fencing |= 1u << lane;
  p.fenced = true;
  return *p.fences[lane];
}

bool Parties::has_fenced(const Party& p, uint32_t lane) {
  const auto& together = p.fences[Party::all_at_once];
  return together || (p.fences[lane] && p.fences[lane]->times[0]);
}

// What the last fences of the lanes have released.
Knowledge Parties::fenced(const Party& p, uint32_t lanes, Scope scope) const {
  const size_t s = size_t(scope);
  Knowledge handed;
  uint32_t together = 0;
  if (const auto& f = p.fences[Party::all_at_once]) {
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

Knowledge Parties::release_relaxed(const Party& p, uint32_t lanes) const {
  Knowledge handed = fenced(p, lanes, Scope::cluster);
  handed.join(of_tensor(known(p, lanes)));
  return handed;
}

// Adds to what a barrier passes on: what the lanes' fences have released at gpu scope, and what the
// lanes have learnt by relaxed loads that no fence has followed yet.
void Parties::add_fences(const Party& p, uint32_t lanes, Knowledge& handed) const {
  const auto& together = p.fences[Party::all_at_once];
  if (!together && !(p.fencing & lanes)) return;
  const Knowledge f = fenced(p, lanes, Scope::gpu);
  handed.flushed.join(f.seen);
  for (const auto& [cluster, far] : f.others) handed.others[cluster].flushed.join(far.seen);
  const auto show = [&](const Fences& of) {
    for (const auto& [cluster, clock] : of.updated) handed.others[cluster].updated.join(clock);
    for (const auto& [cluster, clock] : of.updates) handed.others[cluster].updates.join(clock);
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

bool Parties::has_flushed(const Party& p, uint32_t lane) {
  return any_flushed(p.all) || (p.own[lane] && any_flushed(*p.own[lane]));
}

// What a relaxed store of the lane hands on beside what its own fence has released.
void Parties::add_flushed(const Party& p, uint32_t lane, Knowledge& handed) {
  flush(p.all, handed);
  if (p.own[lane]) flush(*p.own[lane], handed);
}

// A fence for a flag that another thread loaded before both met at a barrier.
void Parties::finish_loads(Party& p, uint32_t lanes) {
  const bool any = !p.all.loaded.empty() ||
                   std::any_of(p.all.others.begin(), p.all.others.end(),
                               [](const auto& far) { return !far.second.loaded.empty(); });
  if (now_.whole(lanes)) {
    if (any) finish(p.all, p.all);
    lanes &= p.owners;
  }
  for_lanes(lanes, [&](uint32_t lane) {
    if (any) finish(p.all, own(p, lane));
    if (p.owners >> lane & 1) finish(*p.own[lane], own(p, lane));
  });
}

// By the manual a fence and the access that it strengthens belong to one thread. On hardware they
// may belong to two lanes that have met in between.
void Parties::meet_fences(Party& p) {
  Fences& together = fences(p, Party::all_at_once);
  for_lanes(p.fencing, [&](uint32_t lane) {
    for (const auto& [cluster, clock] : p.fences[lane]->updated)
      together.updated[cluster].join(clock);
    for (const auto& [cluster, clock] : p.fences[lane]->updates)
      together.updates[cluster].join(clock);
  });
  for (size_t s = 0; s < std::size(together.fenced); ++s) {
    Clock& accesses = together.fenced[s].seen;
    for_lanes(p.fencing, [&](uint32_t lane) {
      const Fences& f = *p.fences[lane];
      join_seen(together.fenced[s], f.fenced[s]);
      join_seen(together.loaded[s], f.loaded[s]);
      accesses.raise_lane(number(p), lane, f.times[s]);
    });
    add_accesses(p, now_.warp().live(), together.times[s], accesses);
  }
  p.fenced = false;
}

void Parties::fence(Scope scope) {
  Party& p = me();
  const bool all = now_.whole(now_.active());
  Fences& together = fences(p, Party::all_at_once);
  for (size_t s = 0; s <= size_t(scope); ++s) {
    acquire(p, now_.active(), all ? std::exchange(together.loaded[s], {}) : together.loaded[s]);
    for_lanes(now_.active() & p.fencing, [&](uint32_t lane) {
      acquire(p, 1u << lane, std::exchange(p.fences[lane]->loaded[s], {}));
    });
    if (all) {
      together.fenced[s] = known(p, 0);
      together.times[s] = p.time;
    }
    for_lanes(all ? now_.active() & (p.owners | p.queuing) : now_.active(), [&](uint32_t lane) {
      Fences& f = fences(p, lane);
      f.fenced[s] = known(p, 1u << lane);
      add_queues(p, 1u << lane, f.fenced[s].seen);
      add_queues(p, 1u << lane, f.fenced[s].strict);
      f.times[s] = p.time;
    });
  }
  if (scope == Scope::gpu) finish_loads(p, now_.active());
  if (scope >= Scope::cluster) refresh(p, now_.active());
  ++p.time;
}

// A proxy fence orders all that its lane has done and seen so far, whichever lane did it. `here`
// passes the clocks of a Knowledge to a function, `far` the clocks of its part about another
// cluster.
template <class Here, class There>
void Parties::carry(uint32_t lanes, Here here, There far) {
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
  if (now_.whole(lanes)) {
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

void Parties::fence_proxy(bool shared, bool global) {
  carry(
      now_.active(),
      [=](Knowledge& k, auto f) {
        if (shared) f(k.fenced);
        if (global) f(k.fenced_global);
      },
      [=](Far& far, auto f) {
        if (global) f(far.fenced);
      });
}

void Parties::fence_tensor_map(uint64_t address, uint32_t lanes) {
  const auto mapped = [=](auto& k, auto f) { f(k.mapped[address]); };
  carry(lanes, mapped, mapped);
}

}  // namespace emu::order
