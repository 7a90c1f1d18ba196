// SPDX-License-Identifier: MIT
// Accesses to global memory, and synchronisation through words in memory: release and acquire, or a
// fence beside a relaxed access (PTX ISA 8.8). See hazards.h.
#include "../exec/machine.h"
#include "hazards.h"
#include "viewer.h"

namespace emu {

uint32_t Hazards::serial() const {
  const Launch& l = cluster_.launch;
  const uint32_t x = l.grid.x / l.cluster.x, y = l.grid.y / l.cluster.y;
  return cluster_.id.x + x * (cluster_.id.y + y * cluster_.id.z);
}

void Hazards::global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, bool same) {
  if (!on() || !bytes) return;
  me();
  Viewer v = viewer(lane);
  v.space = Space::global;
  v.same_value = same;
  Access a = access(lane, use);
  a.cluster = serial();
  GlobalOrder& order = *cluster_.launch.global_order;
  if (!is_read(use)) order.mark_written(address, bytes);
  order.each(address, bytes, [&](Chunk& chunk, uint64_t number, uint16_t mask) {
    a.mask = mask;
    touch(chunk, a, v, number);
  });
}

// Loads are not remembered: a store that comes too early for one is not found.
void Hazards::global(Operation op, uint64_t address, uint64_t bytes, Use use) {
  if (!on() || !bytes) return;
  GlobalOrder& order = *cluster_.launch.global_order;
  if (is_read(use) && !order.written(address, address + bytes)) return;
  Viewer v = viewer(op);
  v.space = Space::global;
  Access a = access(v.lane, use);
  a.cluster = serial();
  a.async = true;
  a.agent = issued(op).agent;
  a.time = issued(op).done;
  if (!is_read(use)) order.mark_written(address, bytes);
  order.each(address, bytes, [&](Chunk& chunk, uint64_t number, uint16_t mask) {
    a.mask = mask;
    touch(chunk, a, v, number, !is_read(use));
  });
}

// Who may take it up: a warp of the same CTA what was released at .cta and wider, and so on.
void Hazards::release_at(bool shared, uint64_t address, Scope scope, bool relaxed) {
  if (!on()) return;
  Party& p = me();
  if (relaxed) {
    for (size_t s = 0; s < 3; ++s) flags(shared)[address].own[s].join(p.fenced[s]);
    if (!shared)
      cluster_.launch.global_order->release(address, serial(), p.fenced[size_t(Scope::gpu)]);
    return;
  }
  const Knowledge handed = release(p);
  for (size_t s = 0; s <= size_t(scope); ++s) flags(shared)[address].own[s].join(handed);
  if (!shared && scope == Scope::gpu)
    cluster_.launch.global_order->release(address, serial(), handed);
}

void Hazards::acquire_at(bool shared, uint64_t address, Scope scope, bool relaxed) {
  if (!on()) return;
  Party& p = me();
  Knowledge taken;
  // Warps of other CTAs of the cluster need .cluster; which CTA released is not kept.
  const size_t least = cluster_.ctas.size() == 1 ? 0 : 1;
  Flags& mine = flags(shared);
  if (const auto it = mine.find(address); it != mine.end()) taken = it->second.own[least];
  Foreign far;
  if (!shared) far = cluster_.launch.global_order->acquire(address);
  if (const auto it = far.find(serial()); it != far.end()) {
    taken.seen.join(it->second);
    taken.strict.join(it->second);
    far.erase(it);
  }
  taken.others = std::move(far);
  if (relaxed) {
    p.loaded.join(taken);
    return;
  }
  if (size_t(scope) < least) return;
  if (scope != Scope::gpu) taken.others.clear();
  acquire(p, taken);
}

}  // namespace emu
