// SPDX-License-Identifier: MIT
// Every access meets those that are remembered of the same bytes. See hazards.h.
#include "../exec/machine.h"
#include "hazards.h"
#include "viewer.h"

namespace emu {

namespace {
constexpr uint32_t chunk_bytes = 16;
constexpr uint16_t all_bytes = 0xFFFF;

bool generic_proxy(Work work) { return work == Work::cp_async || work == Work::store_async; }
}  // namespace

Access Hazards::access(uint32_t lane, Use use) const {
  Access a;
  const uint32_t self = warp_->cta.rank * warps_ + warp_->index;
  a.time = parties_[self].time;
  a.pc = pc();
  a.warp = uint16_t(self);
  a.lane = uint8_t(lane);
  a.use = use;
  a.whole = active_ == warp_->live();
  a.instance = instance_;
  return a;
}

Hazards::Viewer Hazards::viewer(uint32_t lane) const {
  const uint32_t self = warp_->cta.rank * warps_ + warp_->index;
  return {parties_[self], self, lane, active_};
}

Hazards::Viewer Hazards::viewer(Operation op) const {
  Viewer v = viewer(uint32_t(issued(op).lane));
  v.issued = &issued(op);
  v.operation = op;
  return v;
}

void Hazards::shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane,
                     bool same) {
  if (!on() || !bytes) return;
  me();
  Viewer v = viewer(lane);
  v.space = Space::shared;
  v.cta = &cta;
  v.equal = same ? all_bytes : 0;
  Access a = access(lane, use);
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t in = at % chunk_bytes, n = std::min(chunk_bytes - in, address + bytes - at);
    a.mask = uint16_t(((1u << n) - 1) << in);
    touch(shared_[cta.rank][at / chunk_bytes], a, v, at / chunk_bytes);
    at += n;
  }
}

void Hazards::shared(Operation op, Cta& cta, uint32_t address, uint32_t bytes, Use use) {
  if (!on()) return;
  Viewer v = viewer(op);
  v.space = Space::shared;
  v.cta = &cta;
  Access a = access(v.lane, use);
  a.async = true;
  a.time = uint32_t(op);
  if (!is_read(use) && !generic_proxy(issued(op).work))
    landings_[cta.rank].push_back({op, address});
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t in = at % chunk_bytes, n = std::min(chunk_bytes - in, address + bytes - at);
    a.mask = uint16_t(((1u << n) - 1) << in);
    touch(shared_[cta.rank][at / chunk_bytes], a, v, at / chunk_bytes);
    at += n;
  }
}

void Hazards::shared(Operation op, Cta& cta, const std::vector<uint32_t>& chunks, Use use) {
  if (!on()) return;
  Viewer v = viewer(op);
  v.space = Space::shared;
  v.cta = &cta;
  Access a = access(v.lane, use);
  a.async = true;
  a.time = uint32_t(op);
  a.mask = all_bytes;
  for (uint32_t address : chunks)
    touch(shared_[cta.rank][address / chunk_bytes], a, v, address / chunk_bytes);
}

void Hazards::columns(Operation op, Cta& cta, uint32_t column, uint32_t count, uint16_t groups,
                      Use use) {
  if (!on()) return;
  Viewer v = viewer(op);
  v.space = Space::tensor;
  v.cta = &cta;
  Access a = access(v.lane, use);
  a.async = true;
  a.time = uint32_t(op);
  a.mask = groups;
  for (uint32_t c = column; c < column + count; ++c) touch(tensor_[cta.rank][c], a, v, c);
}

void Hazards::free_columns(Cta& cta, uint32_t column, uint32_t count) {
  if (!on()) return;
  me();
  Viewer v = viewer(uint32_t(std::countr_zero(active_)));
  v.space = Space::tensor;
  v.cta = &cta;
  Access a = access(v.lane, Use::write);
  a.mask = all_groups;
  for (uint32_t c = column; c < column + count; ++c) {
    touch(tensor_[cta.rank][c], a, v, c);
    tensor_[cta.rank][c].clear();
  }
}

void Hazards::check_exit(const Cta& cta) {
  if (!on() || parties_.empty()) return;
  const auto waited = [&](const Landing& l) {
    return std::any_of(parties_.begin(), parties_.end(), [&](const Party& p) {
      return completed(issued(l.op), p.knows.seen, false);
    });
  };
  for (const Landing& l : landings_[cta.rank])
    if (!waited(l))
      throw Fault(FaultKind::ordering,
                  format("the CTA ends while a copy into its shared memory at 0x%x is not known to "
                         "be complete: wait for its mbarrier first",
                         l.address));
}

// ---- order ---------------------------------------------------------------------------------------

bool Hazards::completed(const Issued& op, const Clock& clock, bool read) const {
  const uint32_t agent = read && op.read_agent != nobody ? op.read_agent : op.agent;
  const uint32_t done = read && op.read_agent != nobody ? op.read_done : op.done;
  return agent != nobody && clock[agent] >= done;
}

Hazards::Reason Hazards::judge_operation(const Access& old, const Viewer& v) const {
  const Issued& op = issued_[old.time];
  if (uint32_t(v.operation) == old.time) return Reason::ordered;
  // One thread's cp and mma run in order. The manual lists cp -> mma and mma -> mma only.
  const bool read = is_read(old.use);
  if (v.issued && op.pipe != nobody && op.pipe == v.issued->pipe) {
    const bool listed = v.issued->work == Work::mma || v.space != Space::tensor;
    return listed || completed(op, v.party.knows.strict, read) ? Reason::ordered
                                                               : Reason::reused_columns;
  }
  if (v.space == Space::tensor && v.issued && v.issued->work == Work::mma && issued_before(op, v))
    return v.party.knows.tensor[issue_of(op.pipe)] >= op.done ? Reason::ordered
                                                              : Reason::tensor_fence;
  if (!completed(op, v.party.knows.seen, read)) return Reason::incomplete;
  if (!completed(op, v.party.knows.strict, read)) return Reason::scope;
  if (v.space == Space::tensor && op.warp != v.warp && !completed(op, v.party.knows.tensor, read))
    return Reason::tensor_fence;
  if (generic_proxy(op.work) && !read && v.issued && !generic_proxy(v.issued->work) &&
      !completed(op, v.party.knows.fenced, false))
    return Reason::copied_proxy;
  return Reason::ordered;
}

// cp and mma are pipelined with another thread's mma, too (9.7.16.6.4.3).
bool Hazards::issued_before(const Issued& op, const Viewer& v) const {
  const Knowledge& k = v.party.knows;
  return op.pipe != nobody && !completed(op, k.seen, false) && k.seen[issue_of(op.pipe)] >= op.done;
}

// Lanes of one warp. Of lanes that meet in one instruction one writes, which one is left open.
Hazards::Reason Hazards::judge_lane(const Access& old, const Viewer& v) const {
  if (old.lane == every_lane || v.lane == every_lane) return Reason::ordered;
  if (old.lane == v.lane || old.time <= v.party.synced[v.lane]) return Reason::ordered;
  if (same_value(old, v)) return Reason::ordered;
  if (old.instance == instance_ && old.pc == pc() && !v.issued) return Reason::collision;
  if (unordered(old, v) == Reason::weak_flag) return Reason::weak_flag;
  const bool together = old.whole || (v.active >> old.lane & 1);
  return together ? Reason::lanes : Reason::diverged_lanes;
}

// In global memory: another cluster's, or asynchronous work's.
Hazards::Reason Hazards::judge_far(const Access& old, const Viewer& v) const {
  const Knowledge& k = v.party.knows;
  const Clock *seen = &k.seen, *fenced = &k.fenced_global;
  if (old.cluster != serial()) {
    const auto it = k.others.find(old.cluster);
    if (it == k.others.end()) return old.async ? Reason::incomplete_far : unordered(old, v);
    seen = &it->second.seen;
    fenced = &it->second.fenced;
  }
  if (old.async)
    return old.agent != nobody && (*seen)[old.agent] >= old.time ? Reason::ordered
                                                                 : Reason::incomplete_far;
  if ((*seen)[old.warp] < old.time) return unordered(old, v);
  return behind_proxy_fence(old, v, *fenced);
}

// Ordinary stores before work of the async proxy.
Hazards::Reason Hazards::behind_proxy_fence(const Access& old, const Viewer& v,
                                            const Clock& fenced) {
  if (!v.issued || generic_proxy(v.issued->work) || is_read(old.use)) return Reason::ordered;
  if (fenced[old.warp] >= old.time) return Reason::ordered;
  return is_read(v.use) ? Reason::proxy : Reason::proxy_overwrite;
}

bool Hazards::same_value(const Access& old, const Viewer& v) {
  return old.use == Use::write && v.use == Use::write && !(old.mask & v.mask & ~v.equal);
}

// Unordered: two stores of one value, and a plain store that a strong load may meet, show nothing
// on hardware.
Hazards::Reason Hazards::unordered(const Access& old, const Viewer& v) {
  if (same_value(old, v)) return Reason::same_value;
  const bool flag = (old.use == Use::write && v.use == Use::strong_read) ||
                    (old.use == Use::strong_read && v.use == Use::write);
  return flag ? Reason::weak_flag : Reason::unordered;
}

Hazards::Reason Hazards::judge(const Access& old, const Viewer& v) const {
  const Knowledge& k = v.party.knows;
  if (v.space == Space::global && (old.async || old.cluster != serial())) return judge_far(old, v);
  if (old.async) return judge_operation(old, v);
  if (old.warp != v.warp) {
    if (k.seen[old.warp] < old.time) return unordered(old, v);
    if (k.strict[old.warp] < old.time)
      return !is_read(old.use) && is_read(v.use) ? Reason::scope_of_store : Reason::scope;
  }
  const Reason proxy =
      behind_proxy_fence(old, v, v.space == Space::shared ? k.fenced : k.fenced_global);
  if (proxy != Reason::ordered) return proxy;
  return old.warp == v.warp ? judge_lane(old, v) : Reason::ordered;
}

// ---- mbarrier objects ----------------------------------------------------------------------------

void Hazards::barrier_use(Cta& cta, uint32_t address, uint32_t lane) {
  if (on()) me(), check_init(cta, address, viewer(lane), false);
}

void Hazards::barrier_use(Operation op, Cta& cta, uint32_t address) {
  if (on()) check_init(cta, address, viewer(op), true);
}

// The object itself is written by mbarrier.init: an ordinary access, for which fence.mbarrier_init
// and a relaxed cluster barrier do as well.
void Hazards::check_init(Cta& cta, uint32_t address, Viewer v, bool async) {
  const Barrier* b = find(cta, address);
  if (!b) return;
  const Knowledge& k = v.party.knows;
  v.cta = &cta;
  v.mask = 0xFF;
  Access init;
  init.time = b->init_time;
  init.pc = b->pc;
  init.warp = b->warp;
  init.lane = b->lane;
  init.use = Use::write;
  init.mask = 0xFF;
  if (b->warp != v.warp && k.seen[b->warp] < b->init_time && k.inits[b->warp] < b->init_time)
    found(Reason::uninitialised_barrier, init, v, address / chunk_bytes);
  else if (async && k.fenced[b->warp] < b->init_time &&
           (!b->fence_time || (b->warp != v.warp && k.seen[b->warp] < b->fence_time &&
                               k.inits[b->warp] < b->fence_time)))
    found(Reason::init_fence, init, v, address / chunk_bytes);
}

// ---- memory of accesses --------------------------------------------------------------------------

// Does knowing `a` to be over imply the same of the older read?
bool Hazards::replaces(const Access& a, const Access& old) const {
  if (old.use != a.use || (old.mask & ~a.mask) || old.async != a.async) return false;
  if (old.cluster != a.cluster) return false;
  if (!a.async) return old.warp == a.warp && old.lane == a.lane;
  if (a.agent != nobody) return old.agent == a.agent;
  const Issued &before = issued_[old.time], &now = issued_[a.time];
  return now.pipe != nobody && before.pipe == now.pipe;
}

void Hazards::touch(Chunk& chunk, const Access& a, const Viewer& viewer, uint64_t index,
                    bool remember) {
  Viewer v = viewer;
  v.use = a.use;
  v.mask = a.mask;
  bool known = false;
  std::vector<const Access*> open;  // in global memory, not ordered with this one
  chunk.each([&](const Access& old) {
    if (!a.async && !old.async && old.instance == a.instance && old.time == a.time &&
        old.pc == a.pc && old.warp == a.warp && old.mask == a.mask && old.use == a.use &&
        old.cluster == a.cluster)
      known = true;  // neighbours that access the same bytes in one instruction
    if (!(old.mask & a.mask) || !clash(old.use, a.use)) return;
    const Reason reason = judge(old, v);
    if (reason == Reason::ordered) return;
    found(reason, old, v, index);
    if (v.space == Space::global) open.push_back(&old);
  });
  if (!remember) return;
  // What is to be found of three clusters must not depend on which host thread looks first.
  auto stays = open.begin();
  chunk.drop_if([&](Access& old) {
    if (stays != open.end() && *stays == &old) return ++stays, false;
    if (a.use == Use::write) {
      old.mask &= uint16_t(~a.mask);
      return old.mask == 0;
    }
    return !known && a.use != Use::write && replaces(a, old);
  });
  if (!known || a.use == Use::write) chunk.add(a);
}

}  // namespace emu
