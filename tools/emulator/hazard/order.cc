// SPDX-License-Identifier: MIT
// What synchronisation hands on. See hazards.h.
#include "../exec/machine.h"
#include "hazards.h"

#include <utility>

namespace emu {

Hazards::Hazards(Cluster& cluster)
    : cluster_(cluster),
      on_(Findings::wanted(Severity::error) || Findings::wanted(Severity::formal)) {}

// The warps come to be after the cluster has begun to, so the first use counts them.
Hazards::Party& Hazards::me() {
  if (parties_.empty()) {
    const size_t ctas = cluster_.ctas.size();
    warps_ = uint32_t(cluster_.ctas[0]->warps.size());
    agents_ = uint32_t(ctas * warps_);
    parties_.resize(agents_);
    shared_.resize(ctas);
    tensor_.resize(ctas);
    landings_.resize(ctas);
    barriers_.resize(ctas);
    named_.resize(ctas * NamedBarriers::count);
    for (uint32_t i = 0; i < agents_; ++i) {
      parties_[i].knows.seen.raise(i, 1);
      parties_[i].knows.strict.raise(i, 1);
    }
  }
  return parties_[warp_->cta.rank * warps_ + warp_->index];
}

Hazards::Party& Hazards::leader() {
  me();
  return parties_[warp_->cta.rank * warps_ + (warp_->index & ~3u)];
}

uint32_t Hazards::pc() const { return uint32_t(in_ - cluster_.launch.function->code.data()); }

// What others learn by it ends here: the warp's later accesses carry a later time.
Knowledge Hazards::release(Party& p) {
  Knowledge handed = p.knows;
  handed.tensor = p.tensor_ready;
  const uint32_t self = uint32_t(&p - parties_.data());
  ++p.time;
  p.knows.seen.raise(self, p.time);
  p.knows.strict.raise(self, p.time);
  return handed;
}

void Hazards::acquire(Party& p, const Knowledge& handed) {
  p.knows.seen.join(handed.seen);
  p.knows.strict.join(handed.strict);
  p.knows.fenced.join(handed.fenced);
  p.knows.fenced_global.join(handed.fenced_global);
  p.knows.mapped.join(handed.mapped);
  p.knows.inits.join(handed.inits);
  p.tensor_arrived.join(handed.tensor);
  join(p.knows.others, handed.others);
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

Knowledge Hazards::release_relaxed(const Party& p) const {
  Knowledge now = p.knows;
  now.tensor = p.tensor_ready;
  Knowledge handed = p.fenced[size_t(Scope::cluster)];
  handed.join(of_tensor(now));
  return handed;
}

// Of the last four generations of a barrier: a warp that is further behind learns nothing new.
Knowledge& Hazards::slot(std::vector<Slot>& slots, uint64_t ticket) {
  if (slots.empty()) slots.resize(4);
  Slot& s = slots[ticket % slots.size()];
  if (s.ticket != ticket) s = {ticket, {}};
  return s.handed;
}

// ---- barriers of CTA, cluster and warp -----------------------------------------------------------

void Hazards::named_arrive(uint32_t id, uint64_t ticket) {
  if (!on()) return;
  Party& p = me();
  slot(named_[warp_->cta.rank * NamedBarriers::count + id], ticket).join(release(p));
}

void Hazards::named_pass(uint32_t id, uint64_t ticket) {
  if (!on()) return;
  Party& p = me();
  acquire(p, slot(named_[warp_->cta.rank * NamedBarriers::count + id], ticket));
  for_lanes(active_, [&](uint32_t lane) { p.synced[lane] = p.time - 1; });
}

void Hazards::cluster_arrive(uint64_t ticket, bool relaxed) {
  if (!on()) return;
  Party& p = me();
  Knowledge handed = relaxed ? release_relaxed(p) : release(p);
  handed.inits.join(p.knows.inits);
  slot(cluster_slots_, ticket).join(handed);
}

void Hazards::cluster_pass(uint64_t ticket) {
  if (!on()) return;
  Party& p = me();
  acquire(p, slot(cluster_slots_, ticket));
  for_lanes(active_, [&](uint32_t lane) { p.synced[lane] = p.time - 1; });
}

void Hazards::warp_sync(uint32_t lanes) {
  if (!on()) return;
  Party& p = me();
  release(p);
  for_lanes(lanes, [&](uint32_t lane) { p.synced[lane] = p.time - 1; });
}

// ---- fences --------------------------------------------------------------------------------------

void Hazards::fence(Scope scope) {
  if (!on()) return;
  Party& p = me();
  for (size_t s = 0; s <= size_t(scope); ++s) acquire(p, std::exchange(p.loaded[s], {}));
  const Knowledge handed = release(p);
  p.has_fenced = true;
  for (size_t s = 0; s <= size_t(scope); ++s) p.fenced[s] = handed;
}

void Hazards::fence_proxy(bool shared, bool global) {
  if (!on()) return;
  Party& p = me();
  const Knowledge handed = release(p);
  if (shared) p.knows.fenced.join(handed.seen);
  if (!global) return;
  p.knows.fenced_global.join(handed.seen);
  for (auto& [cluster, far] : p.knows.others) far.fenced.join(far.seen);
}

// Of one map in the manual; here of all.
void Hazards::fence_tensor_map() {
  if (!on()) return;
  Party& p = me();
  p.knows.mapped.join(release(p).seen);
  for (auto& [cluster, far] : p.knows.others) far.mapped.join(far.seen);
}

void Hazards::fence_init() {
  if (!on()) return;
  Party& p = me();
  const uint32_t self = uint32_t(&p - parties_.data());
  p.knows.inits.raise(self, p.time);
  for (auto& of_cta : barriers_)
    for (auto& [address, b] : of_cta)
      if (b.warp == self && !b.fence_time) b.fence_time = p.time;
  release(p);
}

void Hazards::tensor_fence_before() {
  if (!on()) return;
  Party& p = me();
  p.tensor_ready.join(p.knows.tensor);
  // Its own ld and st that were waited for, and what a commit has shown to be complete.
  for (uint32_t agent : {p.ld, p.st})
    if (agent != nobody) p.tensor_ready.raise(agent, p.knows.seen[agent]);
  for (const Lane& lane : p.lanes)
    if (lane.pipe != nobody)
      for (uint32_t agent : {lane.pipe, issue_of(lane.pipe)})
        p.tensor_ready.raise(agent, p.knows.seen[agent]);
}

void Hazards::tensor_fence_after() {
  if (!on()) return;
  Party& p = me();
  p.knows.tensor.join(p.tensor_arrived);
}

// ---- mbarriers -----------------------------------------------------------------------------------

Hazards::Barrier* Hazards::find(Cta& cta, uint32_t address) {
  auto& of_cta = barriers_[cta.rank];
  const auto it = of_cta.find(address);
  return it == of_cta.end() ? nullptr : &it->second;
}

void Hazards::barrier_init(Cta& cta, uint32_t address, uint32_t lane) {
  if (!on()) return;
  Party& p = me();
  Barrier b{};
  b.agent = new_agent();
  b.init_time = p.time;
  b.warp = uint16_t(&p - parties_.data());
  b.lane = uint8_t(lane);
  b.pc = pc();
  barriers_[cta.rank][address] = b;
}

void Hazards::barrier_inval(Cta& cta, uint32_t address) {
  if (!on()) return;
  me();
  barriers_[cta.rank].erase(address);
}

// Only the current and the preceding phases are ever asked for.
Knowledge& Hazards::phase_of(Barrier& b, uint64_t phase) {
  Slot& s = b.phases[phase % 4];
  if (s.ticket != phase) s = {phase, {}};
  return s.handed;
}

// An arrival at .cta scope hands nothing to another CTA by the manual; what it hands on hardware is
// everything but ordinary stores (a bug class of its own, CUTLASS issue 3643).
void Hazards::arrive(Cta& cta, uint32_t address, uint64_t phase, Scope scope, bool relaxed) {
  if (!on()) return;
  Party& p = me();
  Barrier* b = find(cta, address);
  if (!b) return;
  Knowledge handed = relaxed ? release_relaxed(p) : release(p);
  if (scope == Scope::cta && &cta != &warp_->cta) handed.strict = {};
  phase_of(*b, phase).join(handed);
}

void Hazards::arrive(Cta& cta, uint32_t address, uint64_t phase, const Knowledge& handed) {
  if (!on()) return;
  if (Barrier* b = find(cta, address)) phase_of(*b, phase).join(handed);
}

void Hazards::observe(Cta& cta, uint32_t address, uint64_t phase, uint32_t lane, bool relaxed) {
  if (!on() || !phase) return;
  Party& p = me();
  Barrier* b = find(cta, address);
  if (!b) return;
  const Knowledge& handed = phase_of(*b, phase - 1);
  if (relaxed) {
    Knowledge& loaded = p.loaded[size_t(cluster_.ctas.size() > 1 ? Scope::cluster : Scope::cta)];
    loaded.join(handed);
    loaded.seen.raise(b->agent, uint32_t(phase));
    loaded.strict.raise(b->agent, uint32_t(phase));
    return acquire(p, of_tensor(handed));
  }
  acquire(p, handed);
  p.knows.seen.raise(b->agent, uint32_t(phase));
  p.knows.strict.raise(b->agent, uint32_t(phase));
  const uint32_t self = uint32_t(&p - parties_.data());
  p.synced[lane] = std::max(p.synced[lane], handed.seen[self]);
}

// ---- asynchronous work ---------------------------------------------------------------------------

Hazards::Operation Hazards::begin(Work work, uint32_t lane) {
  if (!on()) return Operation::none;
  Party& p = me();
  const uint32_t self = uint32_t(&p - parties_.data());
  Issued op{work, uint8_t(lane), uint16_t(self), pc(), {}};
  auto member = [&](uint32_t& agent, uint32_t& count) {
    if (agent == nobody) {
      agent = new_agent();
      if (work == Work::tensor_ld || work == Work::tensor_st) tensor_agents_.push_back(agent);
    }
    op.agent = agent;
    op.done = ++count;
  };
  Lane& l = p.lanes[lane];
  switch (work) {
    case Work::copy:
    case Work::store_async: break;
    case Work::cp_async:
      member(p.copies, p.copied);
      l.copies.last = op.done;
      break;
    case Work::mma:
    case Work::tensor_copy:
      if (l.pipe == nobody) {
        l.pipe = new_agent();
        tensor_agents_.insert(tensor_agents_.end(), {l.pipe, new_agent()});
      }
      member(l.pipe, l.issued);
      op.pipe = op.agent;
      learn(p, issue_of(op.pipe), op.done);
      break;
    case Work::tensor_ld: member(p.ld, p.lds); break;
    case Work::tensor_st: member(p.st, p.sts); break;
    case Work::wgmma: member(leader().wgmma, leader().wgmmas); break;
  }
  op.before = p.knows.seen;
  issued_.push_back(std::move(op));
  return Operation(issued_.size() - 1);
}

void Hazards::join_bulk_group(Operation op) {
  if (!on()) return;
  Party& p = me();
  if (p.bulk == nobody) p.bulk = new_agent(), p.bulk_read = new_agent();
  Issued& o = issued_[size_t(op)];
  o.agent = p.bulk;
  o.read_agent = p.bulk_read;
  o.done = o.read_done = ++p.bulks;
  p.lanes[o.lane].bulk.last = o.done;
}

// Whoever waits for the bytes also learns what the issuer had learnt before it issued the copy.
void Hazards::complete_tx(Operation op, Cta& cta, uint32_t barrier, uint64_t phase) {
  if (!on()) return;
  Barrier* b = find(cta, barrier);
  if (!b) return;
  Issued& o = issued_[size_t(op)];
  o.agent = b->agent;
  o.done = uint32_t(phase + 1);
  for (size_t read : o.bulk_reads) cluster_.launch.global_order->complete(read, o.agent, o.done);
  Knowledge& handed = phase_of(*b, phase);
  handed.seen.join(o.before);
  handed.strict.join(o.before);
}

void Hazards::commit_group(Work work, uint32_t lane) {
  if (!on()) return;
  Lane& l = me().lanes[lane];
  Groups& g = work == Work::cp_async ? l.copies : l.bulk;
  g.ends.push_back(g.last);
}

void Hazards::wait_group(Work work, uint32_t lane, uint32_t allowed, bool only_reads) {
  if (!on()) return;
  Party& p = me();
  const bool bulk = work != Work::cp_async;
  const Groups& g = bulk ? p.lanes[lane].bulk : p.lanes[lane].copies;
  if (g.ends.size() <= allowed) return;
  const uint32_t end = g.ends[g.ends.size() - 1 - allowed];
  learn(p, bulk ? p.bulk_read : p.copies, end);
  if (bulk && !only_reads) learn(p, p.bulk, end);
}

void Hazards::wait_all(uint32_t lane) {
  if (!on()) return;
  Party& p = me();
  learn(p, p.copies, p.lanes[lane].copies.last);
}

void Hazards::wait_tensor(Work work) {
  if (!on()) return;
  Party& p = me();
  const bool ld = work == Work::tensor_ld;
  const uint32_t agent = ld ? p.ld : p.st;
  learn(p, agent, ld ? p.lds : p.sts);
  if (agent != nobody) p.knows.tensor.raise(agent, ld ? p.lds : p.sts);
}

void Hazards::wait_wgmma(uint32_t end) {
  if (on()) learn(me(), leader().wgmma, end);
}

void Hazards::learn(Party& p, uint32_t agent, uint32_t time) {
  if (agent == nobody) return;
  p.knows.seen.raise(agent, time);
  p.knows.strict.raise(agent, time);
}

// Completion of the thread's cp and mma, which implies fence::before_thread_sync; and of what they
// had to wait for. Ordinary accesses of the warp since its last release are not in it.
Knowledge Hazards::committed(uint32_t lane) {
  Knowledge handed;
  if (!on()) return handed;
  Party& p = me();
  const Lane& l = p.lanes[lane];
  if (l.pipe == nobody) return handed;
  handed.seen = without_self(p, p.knows.seen);
  handed.strict = without_self(p, p.knows.strict);
  handed.tensor = p.knows.tensor;
  for (Clock* clock : {&handed.seen, &handed.strict, &handed.tensor})
    clock->raise(l.pipe, l.issued);
  return handed;
}

Knowledge Hazards::copied(uint32_t lane) {
  Knowledge handed;
  if (!on()) return handed;
  Party& p = me();
  if (p.copies == nobody) return handed;
  handed.seen.raise(p.copies, p.lanes[lane].copies.last);
  handed.strict.raise(p.copies, p.lanes[lane].copies.last);
  return handed;
}

Clock Hazards::without_self(const Party& p, Clock clock) {
  clock.lower(uint32_t(&p - parties_.data()), p.time - 1);
  return clock;
}

}  // namespace emu
