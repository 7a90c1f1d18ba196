// SPDX-License-Identifier: MIT
// Accesses to global memory, and synchronisation through words in memory: release and acquire, or a
// fence beside a relaxed access (PTX ISA 8.8). See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/order/hazards.h"
#include "tools/emulator/order/viewer.h"

namespace emu {

namespace {

// Keeps the stored bytes of a chunk at `begin`; the mask of those that were stored with the same
// value before. Compared with the memory itself it would depend on which host thread is faster.
uint16_t store_last(uint8_t* last, uint64_t begin, uint16_t mask, uint64_t address,
                    const void* value) {
  uint16_t equal = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    if (!(mask >> i & 1)) continue;
    const uint8_t byte = static_cast<const uint8_t*>(value)[begin + i - address];
    equal |= uint16_t(uint32_t(last[i] == byte) << i);
    last[i] = byte;
  }
  return equal;
}

}  // namespace

uint32_t Hazards::serial() const {
  const Launch& l = cluster_.launch;
  const uint32_t x = l.grid.x / l.cluster.x, y = l.grid.y / l.cluster.y;
  return cluster_.id.x + x * (cluster_.id.y + y * cluster_.id.z);
}

void Hazards::global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, const void* value) {
  if (!bytes) return;
  me();
  Viewer v = viewer(lane);
  v.space = Space::global;
  Access a = access(lane, use);
  a.cluster = serial();
  meet_earlier_grids({address, bytes, 0, 1}, v, use);
  GlobalOrder& order = global_;
  order.each(address, bytes, !is_read(use),
             [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t* last) {
               a.mask = mask;
               if (value) v.equal = store_last(last, number * 16, mask, address, value);
               touch(chunk, a, v, number);
             });
  if (!is_read(use)) meet_bulk_reads(address, bytes, a, v);
}

void Hazards::global(Operation op, const Rows& rows, Use use) {
  if (!rows.bytes) return;
  GlobalOrder& order = global_;
  Issued& o = issued_[size_t(op)];
  Viewer v = viewer(op);
  v.space = Space::global;
  Access a = access(v.lane, use);
  a.cluster = serial();
  a.async = true;
  a.agent = o.agent;
  a.time = o.done;
  meet_earlier_grids(rows, v, use);
  if (is_read(use) && o.work == Work::copy) {
    o.bulk_reads.push_back(order.add(rows, a));
    order.each_written(rows, [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
      a.mask = mask;
      touch(chunk, a, v, number, false);
    });
    return;
  }
  for (uint32_t i = 0; i < rows.count; ++i) {
    const uint64_t address = rows.address + i * rows.stride;
    order.each(address, rows.bytes, !is_read(use),
               [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
                 a.mask = mask;
                 touch(chunk, a, v, number);
               });
    if (!is_read(use)) meet_bulk_reads(address, rows.bytes, a, v);
  }
}

// Is a fence of that map on the way from the access?
bool Hazards::mapped(const Access& old, const Viewer& v, uint64_t map) const {
  const auto in = [&](const Knowledge& k) {
    const Maps* maps = &k.mapped;
    if (old.cluster != serial()) {
      const auto far = k.others.find(old.cluster);
      if (far == k.others.end()) return false;
      maps = &far->second.mapped;
    }
    const auto it = maps->find(map);
    return it != maps->end() && it->second.reaches(old.warp, old.lanes, old.time);
  };
  return in(v.party.all) || (v.own && in(*v.own));
}

void Hazards::tensor_map(uint64_t address, uint32_t lane) {
  me();
  Viewer v = viewer(lane);
  v.space = Space::global;
  const auto look = [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
    v.mask = mask;
    chunk.each([&](const Access& old) {
      if (is_read(old.use) || !(old.mask & mask)) return;
      Reason reason = judge(old, v);
      if (reason == Reason::ordered && !old.async && !mapped(old, v, address))
        reason = Reason::map_fence;
      if (reason != Reason::ordered) found(reason, old, v, number);
    });
  };
  constexpr uint64_t map_bytes = 128;
  global_.each_written({address, map_bytes, 0, 1}, look);
}

void Hazards::meet_bulk_reads(uint64_t address, uint64_t bytes, const Access& a, Viewer v) {
  v.use = a.use;
  global_.each_read(address, bytes, [&](const Access& old, uint64_t chunk, uint16_t mask) {
    v.mask = mask;
    const Reason reason = judge_far(old, v);
    if (reason != Reason::ordered) found(reason, old, v, chunk);
  });
}

// ---- flags ---------------------------------------------------------------------------------------

Hazards::Flag& Hazards::flag(bool shared, uint64_t address) {
  Flag& f = (shared ? shared_flags_ : global_flags_)[address];
  if (f.cta.empty()) f.cta.resize(cluster_.ctas.size());
  return f;
}

// At .cta only warps of the own CTA may take it up, and so on. Through a relaxed store or update
// comes what a fence before it released.
void Hazards::release_at(bool shared, uint64_t address, uint32_t lane, Scope scope, bool relaxed) {
  Party& p = me();
  const bool flushed = relaxed && has_flushed(p, lane);
  if (relaxed && !flushed && !has_fenced(p, lane)) return;
  const Knowledge released = relaxed ? Knowledge{} : release(p, 1u << lane);
  const auto at = [&](Scope s) {
    Knowledge handed = relaxed ? fenced(p, 1u << lane, s) : released;
    if (flushed && s == Scope::gpu) add_flushed(p, lane, handed);
    return handed;
  };
  Flag& f = flag(shared, address);
  f.cta[warp_->cta.rank].join(at(Scope::cta));
  if (scope >= Scope::cluster) f.cluster.join(at(Scope::cluster));
  if (scope == Scope::gpu && !shared) global_.release(address, serial(), at(Scope::gpu));
}

// A relaxed load leaves it to the next fence.
void Hazards::acquire_at(bool shared, uint64_t address, uint32_t lane, Scope scope, bool relaxed) {
  Party& p = me();
  const auto take = [&](Scope s, const Knowledge& k) {
    if (relaxed)
      load_relaxed(p, 1u << lane, s, k);
    else
      acquire(p, 1u << lane, k);
    if (!relaxed && s >= Scope::cluster) refresh(p, 1u << lane);
  };
  const auto& mine = shared ? shared_flags_ : global_flags_;
  if (const auto it = mine.find(address); it != mine.end()) {
    take(Scope::cta, it->second.cta[warp_->cta.rank]);
    if (scope >= Scope::cluster) take(Scope::cluster, it->second.cluster);
  }
  if (shared || scope != Scope::gpu) return;
  Knowledge far;
  far.others = global_.acquire(address);
  if (const auto it = far.others.find(serial()); it != far.others.end()) {
    far.seen = it->second.seen;
    far.strict = it->second.strict;
    far.fenced_global = it->second.fenced;
    far.flushed = it->second.flushed;
    far.mapped = it->second.mapped;
    far.others.erase(it);
  }
  take(Scope::gpu, far);
}

}  // namespace emu
