// SPDX-License-Identifier: MIT
// What barriers of any kind hand on. See meetings.h.
#include "tools/emulator/order/meetings.h"

#include "tools/emulator/machine/report.h"

namespace emu::order {

Meetings::Meetings(const Now& now, Parties& parties, Operations& operations, GlobalOrder& global)
    : now_(now),
      parties_(parties),
      operations_(operations),
      global_(global),
      barriers_(now.cluster.ctas.size()),
      named_(now.cluster.ctas.size() * NamedBarriers::count) {}

// Only the last four generations of a barrier: a warp that is further behind learns nothing new.
Knowledge& Meetings::slot(std::vector<Slot>& slots, uint64_t ticket) {
  if (slots.empty()) slots.resize(4);
  Slot& s = slots[ticket % slots.size()];
  if (s.ticket != ticket) s = {ticket, {}};
  return s.handed;
}

void Meetings::named_arrive(uint32_t id, uint64_t ticket) {
  Knowledge handed = parties_.release(parties_.me(), now_.active());
  parties_.add_fences(parties_.me(), now_.active(), handed);
  slot(named_[now_.warp().cta.rank * NamedBarriers::count + id], ticket).join(handed);
}

// The lanes have passed this barrier: they now know what each thread knew that arrived there.
void Meetings::named_pass(uint32_t id, uint64_t ticket) {
  Party& p = parties_.me();
  parties_.acquire(p, now_.active(),
                   slot(named_[now_.warp().cta.rank * NamedBarriers::count + id], ticket));
  if (now_.whole(now_.active())) parties_.meet(p, now_.active(), true);
}

void Meetings::cluster_arrive(uint64_t ticket, bool relaxed) {
  Party& p = parties_.me();
  Knowledge handed = parties_.release(p, now_.active());
  if (relaxed) {
    handed.relaxed.join(handed.seen);
    Knowledge less = parties_.release_relaxed(p, now_.active());
    less.relaxed = std::move(handed.relaxed);
    handed = std::move(less);
  }
  handed.inits.join(p.all.inits);
  slot(cluster_slots_, ticket).join(handed);
}

void Meetings::cluster_pass(uint64_t ticket) {
  parties_.acquire(parties_.me(), now_.active(), slot(cluster_slots_, ticket));
  parties_.refresh(parties_.me(), now_.active());
}

void Meetings::fence_init() {
  Party& p = parties_.me();
  p.all.inits.raise(parties_.number(p), p.time);
  for (auto& of_cta : barriers_)
    for (auto& [address, b] : of_cta)
      if (b.warp == parties_.number(p) && !b.fence_time) b.fence_time = p.time;
  ++p.time;
}

Barrier* Meetings::find(Cta& cta, uint32_t address) {
  auto& of_cta = barriers_[cta.rank];
  const auto it = of_cta.find(address);
  return it == of_cta.end() ? nullptr : &it->second;
}

void Meetings::barrier_init(Cta& cta, uint32_t address, uint32_t lane) {
  Party& p = parties_.me();
  Barrier b{};
  b.agent = parties_.new_agent();
  b.init_time = p.time;
  b.warp = uint16_t(parties_.number(p));
  b.lane = uint8_t(lane);
  b.pc = now_.pc();
  barriers_[cta.rank][address] = b;
}

void Meetings::barrier_inval(Cta& cta, uint32_t address) { barriers_[cta.rank].erase(address); }

// Only the current and the preceding phases are ever asked for.
Knowledge& Meetings::phase_of(Barrier& b, uint64_t phase) {
  Slot& s = b.phases[phase % 4];
  if (s.ticket != phase) s = {phase, {}};
  return s.handed;
}

// By the manual an arrival at .cta scope, which is the default, hands nothing to another CTA. On
// hardware it hands on everything except what cp.async wrote (CUTLASS issues 3324 and 3643) and
// ordinary stores. It hands on ordinary stores, too, if the storing CTA's own tensor core reads
// them: see Verdict::not_strict().
void Meetings::arrive(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
                      bool relaxed) {
  Party& p = parties_.me();
  Barrier* b = find(cta, address);
  if (!b) return;
  Knowledge handed = relaxed ? parties_.release_relaxed(p, lanes) : parties_.release(p, lanes);
  if (scope == Scope::cta && &cta != &now_.warp().cta) handed.strict = {};
  phase_of(*b, phase).join(handed);
}

void Meetings::arrive(Operation op, Cta& cta, uint32_t address, uint64_t phase, bool last) {
  if (Barrier* b = find(cta, address)) phase_of(*b, phase).join(operations_.handed(op));
  if (last) operations_.forget(op);
}

void Meetings::observe(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
                       bool relaxed) {
  if (!phase) return;
  Party& p = parties_.me();
  Barrier* b = find(cta, address);
  if (!b) return;
  const Knowledge& handed = phase_of(*b, phase - 1);
  if (!relaxed) {
    parties_.acquire(p, lanes, handed);
    if (scope >= Scope::cluster) parties_.refresh(p, lanes);
    return parties_.learn(p, lanes, b->agent, uint32_t(phase));
  }
  Knowledge loaded = handed;
  loaded.seen.raise(b->agent, uint32_t(phase));
  loaded.strict.raise(b->agent, uint32_t(phase));
  parties_.load_relaxed(p, lanes, now_.cluster.ctas.size() > 1 ? Scope::cluster : Scope::cta,
                        loaded);
  parties_.acquire(p, lanes, parties_.of_tensor(handed));
}

uint64_t Meetings::phases_known(const Party& p, const Cta& cta, uint32_t address) const {
  const auto& of_cta = barriers_[cta.rank];
  const auto it = of_cta.find(address);
  return it == of_cta.end() ? 0 : Parties::known_time(p, it->second.agent);
}

// The warp means the first phase of that parity that it does not know to be over, from its own
// waits or from other warps. If that phase and the next one were over when it came, it has waited
// for a later one. This happens when nothing keeps the others from going on before the warp has
// seen its phase.
void Meetings::check_in_time(Cta& cta, uint32_t address, uint32_t lanes, uint64_t since) {
  if (!since) return;
  const uint64_t known = phases_known(parties_.me(), cta, address);
  const uint64_t meant = known + (known + since) % 2;
  if (meant >= since) return;
  report::formal(
      report::Rule::late_wait,
      format(
          "%s for phase %llu of mbarrier 0x%x came when %llu phases were over and has waited for "
          "the next one of that parity: nothing keeps the others from going on before this warp "
          "has seen its phase",
          now_.in().opcode, (unsigned long long)meant, address, (unsigned long long)since),
      now_.warp(), now_.in(), lanes);
}

// A thread that waits for the bytes also learns what the issuer had learnt before it issued the
// copy.
void Meetings::complete_tx(Operation op, Cta& cta, uint32_t barrier, uint64_t phase) {
  Barrier* b = find(cta, barrier);
  if (!b) return;
  Issued& o = operations_.issued(op);
  o.agent = b->agent;
  o.done = uint32_t(phase + 1);
  for (size_t read : o.bulk_reads) global_.complete(read, o.agent, o.done);
  Knowledge& handed = phase_of(*b, phase);
  handed.seen.join(o.before);
  handed.fresh.join(o.before_fresh);
  handed.strict.join(o.before_strict);
}

}  // namespace emu::order
