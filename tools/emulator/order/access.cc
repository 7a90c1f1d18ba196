// SPDX-License-Identifier: MIT
// Every access meets those that are remembered of the same bytes. See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/hazards.h"
#include "tools/emulator/order/viewer.h"

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
  a.lanes = lane == every_lane ? 0 : 1u << lane;
  a.use = use;
  a.whole = active_ == warp_->live();
  a.instance = instance_;
  if (is_strong(use)) {
    a.scope = in_->has(ptx::Mod::cta)       ? Scope::cta
              : in_->has(ptx::Mod::cluster) ? Scope::cluster
                                            : Scope::gpu;
    a.is_volatile = in_->has(ptx::Mod::volatile_);
  }
  return a;
}

Hazards::Viewer Hazards::viewer(uint32_t lane) const {
  const uint32_t self = warp_->cta.rank * warps_ + warp_->index;
  const Party& p = parties_[self];
  return {p, lane == every_lane ? nullptr : p.own[lane].get(), self, lane, active_};
}

Hazards::Viewer Hazards::viewer(Operation op) const {
  Viewer v = viewer(uint32_t(issued(op).lane));
  v.issued = &issued(op);
  v.operation = op;
  return v;
}

void Hazards::shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane,
                     bool same) {
  if (!bytes) return;
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
  Viewer v = viewer(op);
  v.space = Space::shared;
  v.cta = &cta;
  Access a = access(v.lane, use);
  a.async = true;
  a.time = uint32_t(op);
  if (is_read(use) ? issued(op).work == Work::copy : !generic_proxy(issued(op).work))
    landings_[cta.rank].push_back({op, address, is_read(use)});
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t in = at % chunk_bytes, n = std::min(chunk_bytes - in, address + bytes - at);
    a.mask = uint16_t(((1u << n) - 1) << in);
    touch(shared_[cta.rank][at / chunk_bytes], a, v, at / chunk_bytes);
    at += n;
  }
}

void Hazards::shared(Operation op, Cta& cta, const std::vector<uint32_t>& chunks, Use use) {
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
  if (parties_.empty()) return;
  const auto waited = [&](const Landing& l) {
    const Issued& op = issued(l.op);
    const auto knows = [&](const Party& p) {
      const Viewer v{p, nullptr, number(p), 0, 0};
      return lane_completed(op, v, &Knowledge::seen, l.read);
    };
    return knows(parties_[op.warp]) || std::any_of(parties_.begin(), parties_.end(), knows);
  };
  for (const Landing& l : landings_[cta.rank]) {
    if (waited(l)) continue;
    const ptx::Instr& copy = cluster_.launch.function->code[issued(l.op).pc];
    throw Fault(
        FaultKind::ordering,
        format("the CTA ends while a copy %s its shared memory at 0x%x is not known to %s: %s",
               l.read ? "from" : "into", l.address, l.read ? "have read it" : "be complete",
               l.read ? "cp.async.bulk.wait_group.read, or the wait for its mbarrier, comes "
                        "first"
                      : "wait for its mbarrier first") +
            "\n  copy: " + report::place(cluster_, copy));
  }
}

// ---- order ---------------------------------------------------------------------------------------

// By `one`: does it reach what some lane of the warp had done by then?
bool Hazards::reaches(const Knowledge& k, const Access& old, const Viewer& v, const Order& order,
                      bool one) const {
  const Clock* clock = &(k.*order.here);
  if (v.space == Space::global && old.cluster != serial()) {
    const auto it = k.others.find(old.cluster);
    if (it == k.others.end()) return false;
    clock = &(it->second.*order.far);
  }
  if (old.async) return old.agent != nobody && (*clock)[old.agent] >= old.time;
  return clock->reaches(old.warp, one ? 0 : old.lanes, old.time);
}

bool Hazards::reaches(const Access& old, const Viewer& v, const Order& order) const {
  return reaches(v.party.all, old, v, order) || (v.own && reaches(*v.own, old, v, order));
}

// The same of any lane of the viewer's warp.
bool Hazards::lane_reaches(const Access& old, const Viewer& v, const Order& order, bool one) const {
  bool any = reaches(v.party.all, old, v, order, one);
  for_lanes(v.party.owners,
            [&](uint32_t l) { any = any || reaches(*v.party.own[l], old, v, order, one); });
  return any;
}

Hazards::Reason Hazards::judge_operation(const Access& old, const Viewer& v) const {
  const Issued& op = issued_[old.time];
  if (uint32_t(v.operation) == old.time) return Reason::ordered;
  // One thread's cp and mma run in order. The manual lists cp -> mma and mma -> mma only.
  const bool read = is_read(old.use);
  const auto over = [&](Clock Knowledge::*clock) { return completed(op, v, clock, read); };
  if (v.issued && op.pipe != nobody && op.pipe == v.issued->pipe) {
    const bool listed = v.issued->work == Work::mma || v.space != Space::tensor;
    return listed || over(&Knowledge::strict) ? Reason::ordered : Reason::reused_columns;
  }
  const Clock& tensor = v.party.all.tensor;
  if (v.space == Space::tensor && v.issued && v.issued->work == Work::mma && issued_before(op, v))
    return tensor[issue_of(op.pipe)] >= op.done ? Reason::ordered : Reason::tensor_fence;
  if (!over(&Knowledge::seen))
    return lane_completed(op, v, &Knowledge::seen, read) ? Reason::waited_apart
                                                         : Reason::incomplete;
  if (op.work == Work::tensor_ld && parties_[op.warp].lds_waited < op.done)
    return Reason::used_load;
  if (!over(&Knowledge::strict)) {
    if (lane_completed(op, v, &Knowledge::strict, read)) return Reason::lanes;
    // Read too early on B200s, by the CTA's own tensor core as well: CUTLASS issues 3324 and 3643.
    const bool copied = op.work == Work::cp_async && !read && is_read(v.use);
    return copied ? Reason::scope_of_store : Reason::scope;
  }
  if (v.space == Space::tensor && op.warp != v.warp && tensor[op.agent] < op.done)
    return Reason::tensor_fence;
  if (generic_proxy(op.work) && !read && v.issued && !generic_proxy(v.issued->work) &&
      !over(&Knowledge::fenced))
    return Reason::copied_proxy;
  return Reason::ordered;
}

// cp and mma are pipelined with another thread's mma, too (9.7.16.6.4.3).
bool Hazards::issued_before(const Issued& op, const Viewer& v) const {
  if (op.pipe == nobody || completed(op, v, &Knowledge::seen, false)) return false;
  const uint32_t issue = issue_of(op.pipe);
  return v.party.all.seen[issue] >= op.done || (v.own && v.own->seen[issue] >= op.done);
}

// Lanes of one warp. Of lanes that meet in one instruction one writes, which one is left open.
// Ordinary accesses of lanes that execute something together take effect in order on hardware.
Hazards::Reason Hazards::judge_lane(const Access& old, const Viewer& v) const {
  if (old.lane == every_lane || v.lane == every_lane) return Reason::ordered;
  if (old.lanes == 1u << v.lane || reaches(old, v, Order::strict())) return Reason::ordered;
  if (same_value(old, v)) return Reason::ordered;
  if (old.instance == instance_ && old.pc == pc() && !v.issued) return Reason::collision;
  if (unordered(old, v) == Reason::weak_flag) return Reason::weak_flag;
  const bool together = !v.issued && (old.whole || (v.active >> old.lane & 1));
  return together || reaches(old, v, Order::seen()) ? Reason::lanes : Reason::diverged_lanes;
}

// In global memory: another cluster's, or asynchronous work's.
Hazards::Reason Hazards::judge_far(const Access& old, const Viewer& v) const {
  const bool mine = old.async && old.cluster == serial() && old.warp == v.warp &&
                    old.instance == instance_ && old.pc == pc();
  if (mine && v.issued && v.issued->one_with >> old.lane & 1) return Reason::same_value;
  const bool own_queue = old.async && old.cluster == serial() && old.warp == v.warp &&
                         old.lane == v.lane && has_waited(v.party, v.lane, old.agent, old.time);
  if (!own_queue && !reaches(old, v, Order::seen())) {
    if (lane_reaches(old, v, Order::seen(), false)) return Reason::waited_apart;
    return old.async ? Reason::incomplete_far : not_seen(old, v);
  }
  const Reason proxy = old.async ? Reason::ordered : behind_proxy_fence(old, v);
  if (proxy != Reason::ordered || own_queue || reaches(old, v, Order::strict())) return proxy;
  return fenced_elsewhere(old, v) ? Reason::fence_elsewhere : Reason::lanes;
}

bool Hazards::fenced_elsewhere(const Access& old, const Viewer& v) const {
  return reaches(old, v, Order::flushed()) || reaches(old, v, Order::loaded());
}

// Ordinary stores before work of the async proxy.
Hazards::Reason Hazards::behind_proxy_fence(const Access& old, const Viewer& v) const {
  if (!v.issued || generic_proxy(v.issued->work) || is_read(old.use)) return Reason::ordered;
  const Order fenced{v.space == Space::global ? &Knowledge::fenced_global : &Knowledge::fenced,
                     &Far::fenced};
  if (reaches(old, v, fenced)) return Reason::ordered;
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

// What another lane knows, in the warp of either, would do behind a bar.warp.sync.
Hazards::Reason Hazards::not_seen(const Access& old, const Viewer& v) const {
  const Reason reason = unordered(old, v);
  if (reason != Reason::unordered) return reason;
  if (in_one_cta(old, v) && reaches(old, v, Order::relaxed())) return Reason::relaxed_barrier;
  if (lane_reaches(old, v, Order::seen(), false)) return Reason::waited_apart;
  return lane_reaches(old, v, Order::seen(), true) ? Reason::released_apart : Reason::unordered;
}

// Ordinary accesses of a CTA's threads to its own shared memory.
bool Hazards::in_one_cta(const Access& old, const Viewer& v) const {
  return v.space == Space::shared && !v.issued && old.warp / warps_ == v.cta->rank &&
         v.warp / warps_ == v.cta->rank;
}

// A pair's tcgen05.cp and .mma, issued by the leader, read each CTA's operands in that CTA.
bool Hazards::own_core_reads(const Access& old, const Viewer& v) const {
  return v.space == Space::shared && v.issued &&
         (v.issued->work == Work::mma || v.issued->work == Work::tensor_copy) &&
         old.warp / warps_ == v.cta->rank;
}

// DeepGEMM's pairs run on B200s with scales that a CTA stores, arrives for at .cta scope at the
// leader's mbarrier, and its own tensor core reads. Nothing else is known to do without the scope.
Hazards::Reason Hazards::not_strict(const Access& old, const Viewer& v) const {
  if (fenced_elsewhere(old, v)) return Reason::fence_elsewhere;
  if (lane_reaches(old, v, Order::strict(), true)) return Reason::lanes;
  if (own_core_reads(old, v)) return Reason::scope;
  return !is_read(old.use) && is_read(v.use) ? Reason::scope_of_store : Reason::scope;
}

// A load by way of the SM's cache. Shared memory has none, so the scope of a wait does not matter there.
bool Hazards::stale(const Access& old, const Viewer& v) const {
  const bool cached = !v.issued || v.issued->work == Work::cp_async;
  return v.space == Space::global && cached && is_read(v.use) && !is_strong(v.use) &&
         !is_read(old.use) && old.warp / warps_ != v.warp / warps_ &&
         !reaches(old, v, Order::fresh());
}

Hazards::Reason Hazards::judge_warps(const Access& old, const Viewer& v) const {
  if (old.warp == v.warp) return judge_lane(old, v);
  if (!reaches(old, v, Order::seen())) return not_seen(old, v);
  if (!reaches(old, v, Order::strict())) return not_strict(old, v);
  return stale(old, v) ? Reason::narrow_wait : Reason::ordered;
}

Hazards::Reason Hazards::judge(const Access& old, const Viewer& v) const {
  if (v.space == Space::global && (old.async || old.cluster != serial())) return judge_far(old, v);
  if (old.async) return judge_operation(old, v);
  const Reason reason = judge_warps(old, v);
  if (reason != Reason::ordered && severity(reason) == Severity::error) return reason;
  const Reason proxy = behind_proxy_fence(old, v);
  return proxy == Reason::ordered ? reason : proxy;
}

// ---- strong accesses -----------------------------------------------------------------------------

// The scope of either has to hold both threads (PTX ISA 8.6, morally strong).
bool Hazards::leaves_out(const Access& old, const Access& a) const {
  const bool one_cluster = old.cluster == a.cluster;
  const bool one_cta = one_cluster && old.warp / warps_ == a.warp / warps_;
  const Scope wanted = one_cta ? Scope::cta : one_cluster ? Scope::cluster : Scope::gpu;
  return std::min(old.scope, a.scope) < wanted;
}

// Does a short loop execute it again and again, as one that polls a flag does?
bool Hazards::spins(uint32_t pc) const {
  constexpr uint32_t longest = 8;
  const std::vector<ptx::Instr>& code = cluster_.launch.function->code;
  for (uint32_t at = pc; at < code.size() && at <= pc + longest; ++at)
    if (code[at].target <= pc && code[at].target + longest >= pc) return true;
  return false;
}

// Volatile accesses carry data more often than flags, which are polled.
Hazards::Reason Hazards::judge_strong(const Access& old, const Access& a, const Viewer& v) const {
  if (is_read(old.use) && is_read(a.use)) return Reason::ordered;
  const bool narrow = leaves_out(old, a);
  const bool data = v.space == Space::shared && (old.is_volatile || a.is_volatile) &&
                    !(is_read(old.use) && spins(old.pc)) && !(is_read(a.use) && spins(a.pc));
  if (!narrow && !data) return Reason::ordered;
  const Reason reason = judge(old, v);
  if (reason == Reason::ordered || same_value(old, v)) return Reason::ordered;
  return narrow ? Reason::narrow_scope : Reason::volatile_data;
}

// ---- mbarrier objects ----------------------------------------------------------------------------

void Hazards::barrier_use(Cta& cta, uint32_t address, uint32_t lane) {
  me(), check_init(cta, address, viewer(lane), false);
}

void Hazards::barrier_use(Operation op, Cta& cta, uint32_t address) {
  check_init(cta, address, viewer(op), true);
}

// The object itself is written by mbarrier.init: an ordinary access, for which fence.mbarrier_init
// and a relaxed cluster barrier do as well.
void Hazards::check_init(Cta& cta, uint32_t address, Viewer v, bool async) {
  const Barrier* b = find(cta, address);
  if (!b) return;
  v.cta = &cta;
  v.mask = 0xFF;
  Access init;
  init.time = b->init_time;
  init.pc = b->pc;
  init.warp = b->warp;
  init.lane = b->lane;
  init.lanes = b->lane == every_lane ? 0 : 1u << b->lane;
  init.use = Use::write;
  init.mask = 0xFF;
  const auto fenced_by = [&](uint32_t time) {
    return v.party.all.inits[b->warp] >= time || (v.own && v.own->inits[b->warp] >= time);
  };
  const bool mine = b->warp == v.warp && (b->lane == v.lane || b->lane == every_lane);
  if (!mine && !reaches(init, v, Order::seen()) && !fenced_by(b->init_time))
    found(reaches(init, v, Order::relaxed()) ? Reason::relaxed_init : Reason::uninitialised_barrier,
          init, v, address / chunk_bytes);
  else if (async && !reaches(init, v, {&Knowledge::fenced, &Far::fenced}) && !fence_known(*b, v))
    found(Reason::init_fence, init, v, address / chunk_bytes);
}

// Of a fence.mbarrier_init of the warp that has initialised it.
bool Hazards::fence_known(const Barrier& b, const Viewer& v) const {
  if (!b.fence_time) return false;
  const auto reached = [&](const Knowledge& k) {
    return k.seen.reaches(b.warp, 0, b.fence_time) || k.inits[b.warp] >= b.fence_time;
  };
  return b.warp == v.warp || reached(v.party.all) || (v.own && reached(*v.own));
}

// ---- memory of accesses --------------------------------------------------------------------------

// Does knowing `a` to be over imply the same of the older read?
bool Hazards::replaces(const Access& a, const Access& old) const {
  if (old.use != a.use || (old.mask & ~a.mask) || old.async != a.async) return false;
  if (old.cluster != a.cluster || old.scope > a.scope) return false;
  if (!a.async) return old.warp == a.warp && !(old.lanes & ~a.lanes);
  if (a.agent != nobody) return old.agent == a.agent;
  const Issued &before = issued_[old.time], &now = issued_[a.time];
  return now.pipe != nobody && before.pipe == now.pipe;
}

// Neighbours that access the same bytes in one instruction are remembered as one.
bool Hazards::alike(const Access& a, const Access& old) {
  return !a.async && !old.async && old.instance == a.instance && old.time == a.time &&
         old.pc == a.pc && old.warp == a.warp && old.mask == a.mask && old.use == a.use &&
         old.cluster == a.cluster;
}

void Hazards::touch(Chunk& chunk, const Access& access, const Viewer& viewer, uint64_t index,
                    bool remember) {
  Access a = access;
  Viewer v = viewer;
  v.use = a.use;
  v.mask = a.mask;
  bool known = false;
  std::vector<const Access*> open;  // in global memory, not ordered with this one
  chunk.each([&](const Access& old) {
    if (alike(a, old)) {
      known = true;
      if (a.use != Use::write) a.lanes |= old.lanes;
    }
    if (!(old.mask & a.mask)) return;
    Reason reason = Reason::ordered;
    if (clash(old.use, a.use))
      reason = judge(old, v);
    else if (is_strong(a.use) && is_strong(old.use))
      reason = judge_strong(old, a, v);
    else
      return;
    if (reason == Reason::ordered && !is_read(old.use) && a.use == Use::constant_read)
      reason = Reason::constant_stale;
    if (reason == Reason::ordered && !is_read(a.use) && old.use == Use::constant_read)
      reason = Reason::constant_overwritten;
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
    if (known && alike(a, old)) return old.lanes = a.lanes, false;
    return replaces(a, old);
  });
  if (!known || a.use == Use::write) chunk.add(a);
}

}  // namespace emu
