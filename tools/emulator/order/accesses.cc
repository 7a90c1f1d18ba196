// SPDX-License-Identifier: MIT
// Every access is compared with the recorded accesses to the same bytes. See accesses.h.
#include "tools/emulator/order/accesses.h"

namespace emu::order {

Accesses::Accesses(const Now& now, const Parties& parties, Operations& operations,
                   Meetings& meetings, const Verdict& verdict, const Reporter& reporter,
                   const EarlierGrids& earlier, GlobalOrder& global)
    : now_(now),
      parties_(parties),
      operations_(operations),
      meetings_(meetings),
      verdict_(verdict),
      reporter_(reporter),
      earlier_grids_(earlier),
      global_(global),
      shared_(now.cluster.ctas.size()),
      tensor_(now.cluster.ctas.size()) {}

void Accesses::touch_range(Cta& cta, uint32_t address, uint32_t bytes, Access a, Viewer& v) {
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t in = at % chunk_bytes, n = std::min(chunk_bytes - in, address + bytes - at);
    a.mask = uint16_t(((1u << n) - 1) << in);
    touch(shared_[cta.rank][at / chunk_bytes], a, v, at / chunk_bytes);
    at += n;
  }
}

Access Accesses::access(uint32_t lane, Use use) const {
  Access a;
  const uint32_t self = now_.self();
  a.time = parties_.of(self).time;
  a.pc = now_.pc();
  a.warp = uint16_t(self);
  a.lane = uint8_t(lane);
  a.lanes = lane == every_lane ? 0 : 1u << lane;
  a.use = use;
  a.whole = now_.active() == now_.warp().live();
  a.instance = now_.instance();
  if (is_strong(use)) {
    a.scope = now_.in().has(ptx::Mod::cta)       ? Scope::cta
              : now_.in().has(ptx::Mod::cluster) ? Scope::cluster
                                                 : Scope::gpu;
    a.is_volatile = now_.in().has(ptx::Mod::volatile_);
  }
  return a;
}

void Accesses::shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane,
                      bool same) {
  if (!bytes) return;
  Viewer v = operations_.viewer(lane);
  v.space = Space::shared;
  v.cta = &cta;
  v.equal = same ? all_bytes : 0;
  Access a = access(lane, use);
  touch_range(cta, address, bytes, a, v);
}

// Each lane's bytes lie in one chunk.
void Accesses::shared(const WarpAccess& by_lanes) {
  Lines lines;
  const bool whole = lines.cover(by_lanes);
  if (whole && by_lines(by_lanes, lines)) return;
  if (by_lanes.use == Use::write)
    write_by_lanes(by_lanes);
  else if (by_lanes.use != Use::read || !read_behind_all(by_lanes))
    touch_by_lanes(by_lanes, by_lanes.lanes);
  if (whole && by_lanes.use == Use::write) remember(by_lanes, lines);  // nothing older is left
}

void Accesses::free_columns(Cta& cta, uint32_t column, uint32_t count) {
  Viewer v = operations_.viewer(uint32_t(std::countr_zero(now_.active())));
  v.space = Space::tensor;
  v.cta = &cta;
  Access a = access(v.lane, Use::write);
  a.mask = all_groups;
  for (uint32_t c = column; c < column + count; ++c) {
    touch(tensor_[cta.rank][c], a, v, c);
    tensor_[cta.rank][c].clear();
  }
}

// If all lanes of a warp know of the init, the warp is recorded as knowing it for good.
void Accesses::barrier_use(Cta& cta, uint32_t address, uint32_t lanes) {
  Barrier* b = meetings_.find(cta, address);
  if (!b) return;
  const uint32_t self = now_.self();
  if (self < b->known_to.size() && b->known_to[self]) return;
  for_lanes(lanes,
            [&](uint32_t lane) { check_init(*b, cta, address, operations_.viewer(lane), false); });
  if (!verdict_.reaches(init_of(*b), operations_.viewer(every_lane), Order::seen())) return;
  b->known_to.resize(parties_.all().size());
  b->known_to[self] = true;
}

void Accesses::barrier_use(Operation op, Cta& cta, uint32_t address) {
  if (const Barrier* b = meetings_.find(cta, address))
    check_init(*b, cta, address, operations_.viewer(op), true);
}

Access Accesses::init_of(const Barrier& b) {
  Access init;
  init.time = b.init_time;
  init.pc = b.pc;
  init.warp = b.warp;
  init.lane = b.lane;
  init.lanes = b.lane == every_lane ? 0 : 1u << b.lane;
  init.use = Use::write;
  init.mask = 0xFF;
  return init;
}

// mbarrier.init writes the object as an ordinary access does. But fence.mbarrier_init with a
// relaxed cluster barrier also orders this write.
void Accesses::check_init(const Barrier& b, Cta& cta, uint32_t address, Viewer v, bool async) {
  v.cta = &cta;
  v.mask = 0xFF;
  const Access init = init_of(b);
  const auto fenced_by = [&](uint32_t time) {
    return v.party.all.inits[b.warp] >= time || (v.own && v.own->inits[b.warp] >= time);
  };
  const bool mine = b.warp == v.warp && (b.lane == v.lane || b.lane == every_lane);
  if (!mine && !verdict_.reaches(init, v, Order::seen()) && !fenced_by(b.init_time))
    reporter_.found(verdict_.reaches(init, v, Order::relaxed()) ? Reason::relaxed_init
                                                                : Reason::uninitialised_barrier,
                    init, v, address / chunk_bytes);
  else if (async && !verdict_.reaches(init, v, {&Knowledge::fenced, &Far::fenced}) &&
           !fence_known(b, v))
    reporter_.found(Reason::init_fence, init, v, address / chunk_bytes);
}

// Whether a fence.mbarrier_init of the warp that has initialised it is known.
bool Accesses::fence_known(const Barrier& b, const Viewer& v) const {
  if (!b.fence_time) return false;
  const auto reached = [&](const Knowledge& k) {
    return k.seen.reaches(b.warp, 0, b.fence_time) || k.inits[b.warp] >= b.fence_time;
  };
  return b.warp == v.warp || reached(v.party.all) || (v.own && reached(*v.own));
}

// Does knowing `a` to be over imply the same of the older read?
bool Accesses::replaces(const Access& a, const Access& old) const {
  if (old.use != a.use || (old.mask & ~a.mask) || old.async != a.async) return false;
  if (old.cluster != a.cluster || old.scope > a.scope) return false;
  if (!a.async) return old.warp == a.warp && !(old.lanes & ~a.lanes);
  if (a.agent != nobody) return old.agent == a.agent;
  const Issued &before = operations_.issued(Operation(old.time)),
               &now = operations_.issued(Operation(a.time));
  return now.pipe != nobody && before.pipe == now.pipe;
}

// Neighbours that access the same bytes in one instruction are remembered as one.
bool Accesses::alike(const Access& a, const Access& old) {
  return !a.async && !old.async && old.instance == a.instance && old.time == a.time &&
         old.pc == a.pc && old.warp == a.warp && old.mask == a.mask && old.use == a.use &&
         old.cluster == a.cluster;
}

Reason Accesses::reason_of(const Access& old, const Access& a, const Viewer& v) const {
  Reason reason = Reason::ordered;
  if (clash(old.use, a.use))
    reason = verdict_.judge(old, v);
  else if (is_strong(a.use) && is_strong(old.use))
    reason = verdict_.judge_strong(old, a, v);
  else
    return reason;
  if (reason == Reason::ordered && !is_read(old.use) && a.use == Use::constant_read)
    reason = Reason::constant_stale;
  if (reason == Reason::ordered && !is_read(a.use) && old.use == Use::constant_read)
    reason = Reason::constant_overwritten;
  return reason;
}

void Accesses::touch(Chunk& chunk, const Access& access, Viewer& v, uint64_t index, bool remember) {
  v.use = access.use;
  v.mask = access.mask;
  uint32_t lanes = access.lanes;
  bool known = false;
  const bool by_operation = v.issued && v.space != Space::global;
  std::vector<const Access*> open;  // in global memory, not ordered with this one
  const auto meet = [&](const Access& old) {
    if (!(old.mask & access.mask)) return;
    if (alike(access, old)) {
      known = true;
      if (access.use != Use::write) lanes |= old.lanes;
    }
    if (verdict_.surely_ordered(old, v) || (by_operation && behind_.has(old))) return;
    Reason reason = reason_of(old, access, v);
    if (reason == Reason::unfenced_flag && is_read(access.use) && line_loaded(chunk, index))
      reason = Reason::stale_line;
    if (reason == Reason::ordered && by_operation) behind_.add(old);
    if (reason == Reason::ordered) return;
    reporter_.found(reason, old, v, index);
    if (v.space == Space::global) open.push_back(&old);
  };
  const bool one_of_many = v.space == Space::global && chunk.crowded() && meets_no_kin(access);
  if (one_of_many)
    chunk.each_of(access.cluster, [&](const Access& old) { return meet(old), false; });
  else
    chunk.each(meet);
  if (!remember) return;
  Access a = access;
  a.lanes = lanes;
  auto stays = open.begin();
  const auto is_forgotten = [&](Access& old) {
    if (stays != open.end() && *stays == &old) return ++stays, false;
    return forgets(a, old, known);
  };
  if (one_of_many)
    chunk.each_of(a.cluster, is_forgotten);
  else
    chunk.drop_if(is_forgotten);
  if (!known || a.use == Use::write) chunk.add(a);
}

// Has the CTA loaded the line of 128 bytes into its SM's cache before its last synchronisation by a
// relaxed update of a flag? A page has whole lines.
bool Accesses::line_loaded(const Chunk& chunk, uint64_t index) const {
  constexpr uint64_t line_chunks = 8;
  const Chunk* const line = &chunk - index % line_chunks;
  const uint32_t cta = now_.self() / now_.warps;
  bool any = false;
  for (uint64_t i = 0; i < line_chunks; ++i)
    line[i].each([&](const Access& a) {
      const bool by_cta = !a.async && a.cluster == now_.serial && a.warp / now_.warps == cta;
      const bool cached = a.use == Use::read || a.use == Use::constant_read;
      any = any || (by_cta && cached && a.time <= parties_.of(a.warp).flag_met);
    });
  return any;
}

// The findings about three clusters must not depend on which host thread is faster, so accesses
// that are not ordered are always kept.
bool Accesses::forgets(const Access& a, Access& old, bool known) const {
  if (a.use == Use::write) {
    old.mask &= uint16_t(~a.mask);
    return old.mask == 0;
  }
  if (known && alike(a, old)) return old.lanes = a.lanes, false;
  return replaces(a, old);
}

}  // namespace emu::order
