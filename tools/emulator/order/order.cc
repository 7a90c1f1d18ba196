// SPDX-License-Identifier: MIT
// What synchronisation hands on. See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/order/hazards.h"

namespace emu {

Hazards::Hazards(const Cluster& cluster, GlobalOrder& global,
                 const std::vector<GlobalOrder*>& earlier)
    : cluster_(cluster), global_(global), earlier_(earlier) {}

// The warps come to be after the cluster has begun to, so the first use counts them.
Hazards::Party& Hazards::me() {
  if (parties_.empty()) {
    const size_t ctas = cluster_.ctas.size();
    warps_ = uint32_t(cluster_.ctas[0]->warps.size());
    agents_ = uint32_t(ctas * warps_);
    parties_.resize(agents_++);
    shared_.resize(ctas);
    tensor_.resize(ctas);
    landings_.resize(ctas);
    barriers_.resize(ctas);
    named_.resize(ctas * NamedBarriers::count);
  }
  return parties_[warp_->cta.rank * warps_ + warp_->index];
}

Hazards::Party& Hazards::leader() {
  me();
  return parties_[warp_->cta.rank * warps_ + (warp_->index & ~3u)];
}

uint32_t Hazards::pc() const { return uint32_t(in_ - cluster_.launch.function->code.data()); }

// Of the last four generations of a barrier: a warp that is further behind learns nothing new.
Knowledge& Hazards::slot(std::vector<Slot>& slots, uint64_t ticket) {
  if (slots.empty()) slots.resize(4);
  Slot& s = slots[ticket % slots.size()];
  if (s.ticket != ticket) s = {ticket, {}};
  return s.handed;
}

// ---- barriers of CTA, cluster and warp -----------------------------------------------------------

void Hazards::named_arrive(uint32_t id, uint64_t ticket) {
  Knowledge handed = release(me(), active_);
  add_fences(me(), active_, handed);
  slot(named_[warp_->cta.rank * NamedBarriers::count + id], ticket).join(handed);
}

// The lanes have come by this barrier what each knew before it.
void Hazards::named_pass(uint32_t id, uint64_t ticket) {
  Party& p = me();
  acquire(p, active_, slot(named_[warp_->cta.rank * NamedBarriers::count + id], ticket));
  if (whole(active_)) meet(p, active_, true);
}

void Hazards::cluster_arrive(uint64_t ticket, bool relaxed) {
  Party& p = me();
  Knowledge handed = release(p, active_);
  if (relaxed) {
    handed.relaxed.join(handed.seen);
    Knowledge less = release_relaxed(p, active_);
    less.relaxed = std::move(handed.relaxed);
    handed = std::move(less);
  }
  handed.inits.join(p.all.inits);
  slot(cluster_slots_, ticket).join(handed);
}

void Hazards::cluster_pass(uint64_t ticket) {
  acquire(me(), active_, slot(cluster_slots_, ticket));
  refresh(me(), active_);
}

// ---- fences --------------------------------------------------------------------------------------

void Hazards::fence_init() {
  Party& p = me();
  p.all.inits.raise(number(p), p.time);
  for (auto& of_cta : barriers_)
    for (auto& [address, b] : of_cta)
      if (b.warp == number(p) && !b.fence_time) b.fence_time = p.time;
  ++p.time;
}

void Hazards::tensor_fence_before() {
  Party& p = me();
  p.tensor_ready.join(p.all.tensor);
  // Its own ld and st that were waited for, and what a commit has shown to be complete.
  for (uint32_t agent : {p.ld, p.st})
    if (agent != nobody) p.tensor_ready.raise(agent, known_time(p, agent));
  for (const Lane& lane : p.lanes)
    if (lane.pipe != nobody)
      for (uint32_t agent : {lane.pipe, issue_of(lane.pipe)})
        p.tensor_ready.raise(agent, known_time(p, agent));
}

void Hazards::tensor_fence_after() {
  Party& p = me();
  p.all.tensor.join(p.tensor_arrived);
}

// ---- mbarriers -----------------------------------------------------------------------------------

Hazards::Barrier* Hazards::find(Cta& cta, uint32_t address) {
  auto& of_cta = barriers_[cta.rank];
  const auto it = of_cta.find(address);
  return it == of_cta.end() ? nullptr : &it->second;
}

void Hazards::barrier_init(Cta& cta, uint32_t address, uint32_t lane) {
  Party& p = me();
  Barrier b{};
  b.agent = new_agent();
  b.init_time = p.time;
  b.warp = uint16_t(number(p));
  b.lane = uint8_t(lane);
  b.pc = pc();
  barriers_[cta.rank][address] = b;
}

void Hazards::barrier_inval(Cta& cta, uint32_t address) {
  me();
  barriers_[cta.rank].erase(address);
}

// Only the current and the preceding phases are ever asked for.
Knowledge& Hazards::phase_of(Barrier& b, uint64_t phase) {
  Slot& s = b.phases[phase % 4];
  if (s.ticket != phase) s = {phase, {}};
  return s.handed;
}

// An arrival at .cta scope, which is the default, hands nothing to another CTA by the manual; what it
// hands on hardware is everything but what cp.async wrote (CUTLASS issues 3324 and 3643) and ordinary
// stores, and of these what the storing CTA's own tensor core reads: see not_strict().
void Hazards::arrive(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
                     bool relaxed) {
  Party& p = me();
  Barrier* b = find(cta, address);
  if (!b) return;
  Knowledge handed = relaxed ? release_relaxed(p, lanes) : release(p, lanes);
  if (scope == Scope::cta && &cta != &warp_->cta) handed.strict = {};
  phase_of(*b, phase).join(handed);
}

void Hazards::arrive(Operation op, Cta& cta, uint32_t address, uint64_t phase, bool last) {
  const auto handed = handed_.find(op);
  if (Barrier* b = find(cta, address)) phase_of(*b, phase).join(handed->second);
  if (last) handed_.erase(handed);
}

void Hazards::observe(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
                      bool relaxed) {
  if (!phase) return;
  Party& p = me();
  Barrier* b = find(cta, address);
  if (!b) return;
  const Knowledge& handed = phase_of(*b, phase - 1);
  if (!relaxed) {
    acquire(p, lanes, handed);
    if (scope >= Scope::cluster) refresh(p, lanes);
    return learn(p, lanes, b->agent, uint32_t(phase));
  }
  Knowledge loaded = handed;
  loaded.seen.raise(b->agent, uint32_t(phase));
  loaded.strict.raise(b->agent, uint32_t(phase));
  load_relaxed(p, lanes, cluster_.ctas.size() > 1 ? Scope::cluster : Scope::cta, loaded);
  acquire(p, lanes, of_tensor(handed));
}

}  // namespace emu
