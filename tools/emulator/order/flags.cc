// SPDX-License-Identifier: MIT
// Synchronisation through words in memory: release and acquire, or a fence beside a relaxed access
// (PTX ISA 8.8). See meetings.h.
#include "tools/emulator/order/meetings.h"

namespace emu::order {

uint64_t Meetings::key(const Cta* cta, uint64_t address) {
  return cta ? uint64_t(cta->rank) << 32 | address : address;
}

Meetings::Flag& Meetings::flag(const Cta* cta, uint64_t address) {
  Flag& f = flags(cta)[key(cta, address)];
  if (f.cta.empty()) f.cta.resize(now_.cluster.ctas.size());
  return f;
}

// At .cta only warps of the own CTA may take it up, and so on. Through a relaxed store or update
// comes what a fence before it released.
void Meetings::release_at(const Cta* cta, uint64_t address, uint32_t lane, Scope scope,
                          bool relaxed) {
  Party& p = parties_.me();
  const bool flushed = relaxed && parties_.has_flushed(p, lane);
  if (relaxed && !flushed && !parties_.has_fenced(p, lane)) return;
  const Knowledge released = relaxed ? Knowledge{} : parties_.release(p, 1u << lane);
  const auto at = [&](Scope s) {
    Knowledge handed = relaxed ? parties_.fenced(p, 1u << lane, s) : released;
    if (flushed && s == Scope::gpu) parties_.add_flushed(p, lane, handed);
    if (relaxed && now_.updates()) handed.updates.raise_lane(now_.self(), lane, p.time);
    return handed;
  };
  Flag& f = flag(cta, address);
  f.cta[now_.warp().cta.rank].join(at(Scope::cta));
  if (scope >= Scope::cluster) f.cluster.join(at(Scope::cluster));
  if (scope == Scope::gpu && !cta) global_.release(address, now_.serial, at(Scope::gpu));
}

// A relaxed load leaves it to the next fence. What a lane has acquired it knows: one that polls a
// flag learns nothing until the next release.
void Meetings::acquire_at(const Cta* cta, uint64_t address, uint32_t lane, Scope scope,
                          bool relaxed) {
  Party& p = parties_.me();
  const auto take = [&](Scope s, const Knowledge& k) {
    if (relaxed)
      parties_.load_relaxed(p, 1u << lane, s, k);
    else
      parties_.acquire(p, 1u << lane, k);
    if (!relaxed && s >= Scope::cluster) parties_.refresh(p, 1u << lane);
  };
  const Flags& mine = flags(cta);
  if (const auto it = mine.find(key(cta, address)); it != mine.end()) {
    take(Scope::cta, it->second.cta[now_.warp().cta.rank]);
    if (scope >= Scope::cluster) take(Scope::cluster, it->second.cluster);
  }
  if (cta || scope != Scope::gpu) return;
  Knowledge far;
  if (const std::shared_ptr<const Foreign> left = global_.acquire(address)) {
    const bool again = !relaxed && p.acquired[lane] == left;
    if (again) return parties_.refresh(p, 1u << lane);
    if (!relaxed) p.acquired[lane] = left;
    far.others = *left;
  }
  if (const auto it = far.others.find(now_.serial); it != far.others.end()) {
    far.seen = it->second.seen;
    far.strict = it->second.strict;
    far.fenced_global = it->second.fenced;
    far.flushed = it->second.flushed;
    far.mapped = it->second.mapped;
    far.others.erase(it);
  }
  take(Scope::gpu, far);
}

}  // namespace emu::order
