// SPDX-License-Identifier: MIT
// What the lanes of a warp know together and each by itself. See parties.h.
#include "tools/emulator/order/parties.h"

#include <algorithm>
#include <utility>

namespace emu::order {

Parties::Parties(const Now& now)
    : now_(now), parties_(now.cluster.ctas.size() * now.warps), agents_(earlier_grids() + 1) {}

Party& Parties::leader() {
  return parties_[now_.warp().cta.rank * now_.warps + (now_.warp().index & ~3u)];
}

uint32_t Parties::new_tensor_agent() {
  tensor_agents_.push_back(new_agent());
  return tensor_agents_.back();
}

Knowledge& Parties::own(Party& p, uint32_t lane) {
  if (!p.own[lane]) p.own[lane] = std::make_unique<Knowledge>();
  p.owners |= 1u << lane;
  p.fresh |= 1u << lane;
  return *p.own[lane];
}

Knowledge Parties::known(const Party& p, uint32_t lanes) const {
  Knowledge k = p.all;
  for_lanes(lanes & p.owners, [&](uint32_t lane) { k.join(*p.own[lane]); });
  k.tensor = p.tensor_ready;
  k.tensor.join(p.tensor_arrived);  // a warp between the two fences needs none of its own
  return k;
}

// The accesses of the lanes up to an epoch. To exit is no release: a barrier that goes on without a
// thread orders what the others have done (PTX ISA 9.7.12.7, 9.7.13.1).
void Parties::add_accesses(const Party& p, uint32_t lanes, uint32_t time, Clock& to) const {
  if (!(now_.warp().lanes & ~lanes)) return to.raise(number(p), time);
  for_lanes(lanes, [&](uint32_t lane) { to.raise_lane(number(p), lane, time); });
}

// The operations that the lanes have waited for.
void Parties::add_queues(const Party& p, uint32_t lanes, Clock& to) {
  for_lanes(lanes & p.queuing, [&](uint32_t lane) {
    p.lanes[lane].queues([&](const Queue& q) { to.raise(q.agent, q.done); });
  });
}

// A release tells other threads only of accesses up to this point: later accesses of the warp get a
// later time.
Knowledge Parties::release(Party& p, uint32_t lanes) {
  Knowledge handed = known(p, lanes);
  for (Clock* clock : {&handed.seen, &handed.strict}) {
    add_accesses(p, lanes, p.time, *clock);
    add_queues(p, lanes, *clock);
  }
  ++p.time;
  return handed;
}

Parties::Before Parties::release_before(Party& p, uint32_t lanes) {
  Before b{p.all.seen, p.all.strict, p.all.fresh};
  for_lanes(lanes & p.owners, [&](uint32_t lane) {
    b.seen.join(p.own[lane]->seen);
    b.strict.join(p.own[lane]->strict);
    b.fresh.join(p.own[lane]->fresh);
  });
  for (Clock* clock : {&b.seen, &b.strict}) {
    add_accesses(p, lanes, p.time, *clock);
    add_queues(p, lanes, *clock);
  }
  ++p.time;
  return b;
}

// tcgen05.fence composes with any synchronisation that orders execution, relaxed ones too
// (9.7.16.6.3), so these carry the order of tcgen05 work but not that of memory accesses.
Knowledge Parties::of_tensor(const Knowledge& k) const {
  Knowledge part;
  for (uint32_t agent : tensor_agents_) {
    part.seen.raise(agent, k.seen[agent]);
    part.strict.raise(agent, k.strict[agent]);
    part.tensor.raise(agent, k.tensor[agent]);
  }
  return part;
}

void Parties::acquire(Party& p, uint32_t lanes, const Knowledge& handed) {
  p.tensor_arrived.join(handed.tensor);
  if (now_.whole(lanes)) return join_acquired(p.all, handed);
  for_lanes(lanes, [&](uint32_t lane) { join_acquired(own(p, lane), handed); });
}

// An acquire at a scope wider than the CTA. ptxas 13.0 puts CCTL.IVALL after its wait, and this
// instruction drops the bytes of global memory that the SM's cache has kept.
void Parties::refresh(Party& p, uint32_t lanes) {
  if (now_.cluster.ctas.size() == 1) return;
  if (now_.whole(lanes)) p.all.fresh.join(p.all.seen);
  for_lanes(now_.whole(lanes) ? p.owners : lanes, [&](uint32_t lane) {
    Knowledge& k = own(p, lane);
    k.fresh.join(p.all.seen);
    k.fresh.join(k.seen);
  });
}

// What a relaxed load has learnt takes effect only with the thread's next fence.
void Parties::load_relaxed(Party& p, uint32_t lanes, Scope scope, const Knowledge& handed) {
  const bool updates = now_.updates() && !handed.others.empty();
  if (updates) meet_flag(p);
  const auto load = [&](Fences& f) {
    f.loaded[size_t(scope)].join(handed);
    if (!updates) return;
    for (const auto& [cluster, far] : handed.others) {
      f.updated[cluster].join(far.seen);
      f.updates[cluster].join(far.updates);
    }
  };
  if (now_.whole(lanes)) return load(fences(p, Party::all_at_once));
  for_lanes(lanes, [&](uint32_t lane) { load(fences(p, lane)); });
}

void Parties::meet_flag(const Party& p) {
  const uint32_t first = number(p) / now_.warps * now_.warps;
  for (uint32_t w = first; w < first + now_.warps; ++w) parties_[w].flag_met = parties_[w].time;
}

void Parties::learn(Party& p, uint32_t lanes, uint32_t agent, uint32_t time) {
  if (agent == nobody) return;
  const auto raise = [=](Knowledge& k) {
    k.seen.raise(agent, time);
    k.strict.raise(agent, time);
  };
  if (now_.whole(lanes)) return raise(p.all);
  for_lanes(lanes, [&](uint32_t lane) { raise(own(p, lane)); });
}

uint32_t Parties::known_time(const Party& p, uint32_t agent) {
  uint32_t time = p.all.seen[agent];
  for_lanes(p.owners, [&](uint32_t l) { time = std::max(time, p.own[l]->seen[agent]); });
  return time;
}

void Parties::meet(Party& p, uint32_t lanes, bool by_the_manual) {
  const auto join = by_the_manual ? join_acquired : join_seen;
  const bool all = now_.whole(lanes);
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

}  // namespace emu::order
