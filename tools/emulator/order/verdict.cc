// SPDX-License-Identifier: MIT
// See verdict.h.
#include "tools/emulator/order/verdict.h"

namespace emu::order {

// Does the clock reach the old access? With `one` it is enough that it reaches what some lane of
// that warp had done by then.
bool Verdict::reaches(const Knowledge& k, const Access& old, const Viewer& v, const Order& order,
                      bool one) const {
  const Clock* clock = &(k.*order.here);
  if (v.space == Space::global && old.cluster != now_.serial) {
    const auto it = k.others.find(old.cluster);
    if (it == k.others.end()) return false;
    clock = &(it->second.*order.far);
  }
  if (old.async) return old.agent != nobody && (*clock)[old.agent] >= old.time;
  return clock->reaches(old.warp, one ? 0 : old.lanes, old.time);
}

bool Verdict::reaches(const Access& old, const Viewer& v, const Order& order) const {
  return reaches(v.party.all, old, v, order) || (v.own && reaches(*v.own, old, v, order));
}

// The same of any lane of the viewer's warp.
bool Verdict::lane_reaches(const Access& old, const Viewer& v, const Order& order, bool one) const {
  bool any = reaches(v.party.all, old, v, order, one);
  for_lanes(v.party.owners,
            [&](uint32_t l) { any = any || reaches(*v.party.own[l], old, v, order, one); });
  return any;
}

// Is a fence of that map on the way from the access?
bool Verdict::mapped(const Access& old, const Viewer& v, uint64_t map) const {
  const auto in = [&](const Knowledge& k) {
    const Maps* maps = &k.mapped;
    if (old.cluster != now_.serial) {
      const auto far = k.others.find(old.cluster);
      if (far == k.others.end()) return false;
      maps = &far->second.mapped;
    }
    const auto it = maps->find(map);
    return it != maps->end() && it->second.reaches(old.warp, old.lanes, old.time);
  };
  return in(v.party.all) || (v.own && in(*v.own));
}

Reason Verdict::judge_operation(const Access& old, const Viewer& v) const {
  const Issued& op = operations_.issued(Operation(old.time));
  if (uint32_t(v.operation) == old.time) return Reason::ordered;
  // One thread's cp and mma run in order. The manual lists cp -> mma and mma -> mma only.
  const bool read = is_read(old.use);
  const auto over = [&](Clock Knowledge::*clock) {
    return operations_.completed(op, v, clock, read);
  };
  if (v.issued && op.pipe != nobody && op.pipe == v.issued->pipe) {
    const bool listed = v.issued->work == Work::mma || v.space != Space::tensor;
    return listed || over(&Knowledge::strict) ? Reason::ordered : Reason::reused_columns;
  }
  const Clock& tensor = v.party.all.tensor;
  if (v.space == Space::tensor && v.issued && v.issued->work == Work::mma &&
      operations_.issued_before(op, v))
    return tensor[issue_of(op.pipe)] >= op.done ? Reason::ordered : Reason::tensor_fence;
  if (!over(&Knowledge::seen))
    return operations_.lane_completed(op, v, &Knowledge::seen, read) ? Reason::waited_apart
                                                                     : Reason::incomplete;
  if (op.work == Work::tensor_ld && parties_.of(op.warp).lds_waited < op.done)
    return Reason::used_load;
  if (!over(&Knowledge::strict)) {
    if (operations_.lane_completed(op, v, &Knowledge::strict, read)) return Reason::lanes;
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

// Lanes of one warp. If lanes meet in one instruction one of them writes, and which one is left
// open. Ordinary accesses of lanes that execute something together take effect in order on
// hardware.
Reason Verdict::judge_lane(const Access& old, const Viewer& v) const {
  if (old.lane == every_lane || v.lane == every_lane) return Reason::ordered;
  if (old.lanes == 1u << v.lane || reaches(old, v, Order::strict())) return Reason::ordered;
  if (same_value(old, v)) return Reason::ordered;
  if (old.instance == now_.instance() && old.pc == now_.pc() && !v.issued) return Reason::collision;
  if (unordered(old, v) == Reason::weak_flag) return Reason::weak_flag;
  const bool together = !v.issued && (old.whole || (v.active >> old.lane & 1));
  return together || reaches(old, v, Order::seen()) ? Reason::lanes : Reason::diverged_lanes;
}

// In global memory: another cluster's, or asynchronous work's.
Reason Verdict::judge_far(const Access& old, const Viewer& v) const {
  const bool mine = old.async && old.cluster == now_.serial && old.warp == v.warp &&
                    old.instance == now_.instance() && old.pc == now_.pc();
  if (mine && v.issued && v.issued->one_with >> old.lane & 1) return Reason::same_value;
  const bool own_queue = old.async && old.cluster == now_.serial && old.warp == v.warp &&
                         old.lane == v.lane &&
                         operations_.has_waited(v.party, v.lane, old.agent, old.time);
  if (!own_queue && !reaches(old, v, Order::seen())) {
    if (lane_reaches(old, v, Order::seen(), false)) return Reason::waited_apart;
    return old.async ? Reason::incomplete_far : not_seen(old, v);
  }
  const Reason proxy = old.async ? Reason::ordered : behind_proxy_fence(old, v);
  if (proxy != Reason::ordered || own_queue || reaches(old, v, Order::strict())) return proxy;
  return fenced_elsewhere(old, v) ? Reason::fence_elsewhere : Reason::lanes;
}

bool Verdict::fenced_elsewhere(const Access& old, const Viewer& v) const {
  return reaches(old, v, Order::flushed()) || reaches(old, v, Order::loaded());
}

// Ordinary stores before work of the async proxy.
Reason Verdict::behind_proxy_fence(const Access& old, const Viewer& v) const {
  if (!v.issued || generic_proxy(v.issued->work) || is_read(old.use)) return Reason::ordered;
  const Order fenced{v.space == Space::global ? &Knowledge::fenced_global : &Knowledge::fenced,
                     &Far::fenced};
  if (reaches(old, v, fenced)) return Reason::ordered;
  return is_read(v.use) ? Reason::proxy : Reason::proxy_overwrite;
}

bool Verdict::same_value(const Access& old, const Viewer& v) {
  return old.use == Use::write && v.use == Use::write && !(old.mask & v.mask & ~v.equal);
}

// Unordered: two stores of one value, and a plain store that a strong load may meet, show nothing
// on hardware.
Reason Verdict::unordered(const Access& old, const Viewer& v) {
  if (same_value(old, v)) return Reason::same_value;
  const bool flag = (old.use == Use::write && v.use == Use::strong_read) ||
                    (old.use == Use::strong_read && v.use == Use::write);
  return flag ? Reason::weak_flag : Reason::unordered;
}

// If another lane in the warp of either access knows enough, a bar.warp.sync would order the
// accesses.
Reason Verdict::not_seen(const Access& old, const Viewer& v) const {
  const Reason reason = unordered(old, v);
  if (reason != Reason::unordered) return reason;
  if (in_one_cta(old, v) && reaches(old, v, Order::relaxed())) return Reason::relaxed_barrier;
  if (met_flag(old, v)) return Reason::unfenced_flag;
  if (lane_reaches(old, v, Order::seen(), false)) return Reason::waited_apart;
  return lane_reaches(old, v, Order::seen(), true) ? Reason::released_apart : Reason::unordered;
}

// The pattern of the last block. Threads of another cluster store, fence and update a flag; one
// thread here updates the flag, too, all meet at a barrier, and then they load or store. Hardware
// orders this: an SM reads what its cache does not hold from where it is visible, and stores
// nothing before the branch that tests the flag.
bool Verdict::met_flag(const Access& old, const Viewer& v) const {
  const bool plain = v.use == Use::write || (v.use == Use::read && old.use == Use::write);
  return v.space == Space::global && !v.issued && plain && old.cluster != now_.serial &&
         (reaches(old, v, Order::updated()) ||
          (old.use == Use::atomic && reaches(old, v, Order::updates())));
}

// Ordinary accesses of a CTA's threads to its own shared memory.
bool Verdict::in_one_cta(const Access& old, const Viewer& v) const {
  return v.space == Space::shared && !v.issued && old.warp / now_.warps == v.cta->rank &&
         v.warp / now_.warps == v.cta->rank;
}

// A pair's tcgen05.cp and .mma, issued by the leader, read each CTA's operands in that CTA.
bool Verdict::own_core_reads(const Access& old, const Viewer& v) const {
  return v.space == Space::shared && v.issued &&
         (v.issued->work == Work::mma || v.issued->work == Work::tensor_copy) &&
         old.warp / now_.warps == v.cta->rank;
}

// In DeepGEMM's pairs, which run on B200s, a CTA stores scales and arrives with scope .cta at the
// leader's mbarrier; then the storing CTA's own tensor core reads the scales. Nothing else is known
// to work without the wider scope.
Reason Verdict::not_strict(const Access& old, const Viewer& v) const {
  if (fenced_elsewhere(old, v)) return Reason::fence_elsewhere;
  if (lane_reaches(old, v, Order::strict(), true)) return Reason::lanes;
  if (own_core_reads(old, v)) return Reason::scope;
  return !is_read(old.use) && is_read(v.use) ? Reason::scope_of_store : Reason::scope;
}

// A load by way of the SM's cache. Shared memory has none, so the scope of a wait does not matter
// there.
bool Verdict::stale(const Access& old, const Viewer& v) const {
  const bool cached = !v.issued || v.issued->work == Work::cp_async;
  return v.space == Space::global && cached && is_read(v.use) && !is_strong(v.use) &&
         !is_read(old.use) && old.warp / now_.warps != v.warp / now_.warps &&
         !reaches(old, v, Order::fresh());
}

Reason Verdict::judge_warps(const Access& old, const Viewer& v) const {
  if (old.warp == v.warp) return judge_lane(old, v);
  if (!reaches(old, v, Order::seen())) return not_seen(old, v);
  if (!reaches(old, v, Order::strict())) return not_strict(old, v);
  return stale(old, v) ? Reason::narrow_wait : Reason::ordered;
}

Reason Verdict::judge(const Access& old, const Viewer& v) const {
  if (v.space == Space::global && (old.async || old.cluster != now_.serial))
    return judge_far(old, v);
  if (old.async) return judge_operation(old, v);
  const Reason reason = judge_warps(old, v);
  if (reason != Reason::ordered && severity_of(reason) == Severity::error) return reason;
  const Reason proxy = behind_proxy_fence(old, v);
  return proxy == Reason::ordered ? reason : proxy;
}

// The scope of either has to hold both threads (PTX ISA 8.6, morally strong).
bool Verdict::leaves_out(const Access& old, const Access& a) const {
  const bool one_cluster = old.cluster == a.cluster;
  const bool one_cta = one_cluster && old.warp / now_.warps == a.warp / now_.warps;
  const Scope wanted = one_cta ? Scope::cta : one_cluster ? Scope::cluster : Scope::gpu;
  return std::min(old.scope, a.scope) < wanted;
}

// Does a short loop execute it again and again, as one that polls a flag does?
bool Verdict::spins(uint32_t pc) const {
  constexpr uint32_t longest = 8;
  const std::vector<ptx::Instr>& code = now_.cluster.launch.function->code;
  for (uint32_t at = pc; at < code.size() && at <= pc + longest; ++at)
    if (code[at].target <= pc && code[at].target + longest >= pc) return true;
  return false;
}

// Volatile accesses carry data more often than flags, which are polled.
Reason Verdict::judge_strong(const Access& old, const Access& a, const Viewer& v) const {
  if (is_read(old.use) && is_read(a.use)) return Reason::ordered;
  const bool narrow = leaves_out(old, a);
  const bool data = v.space == Space::shared && (old.is_volatile || a.is_volatile) &&
                    !(is_read(old.use) && spins(old.pc)) && !(is_read(a.use) && spins(a.pc));
  if (!narrow && !data) return Reason::ordered;
  const Reason reason = judge(old, v);
  if (reason == Reason::ordered || same_value(old, v)) return Reason::ordered;
  return narrow ? Reason::narrow_scope : Reason::volatile_data;
}

}  // namespace emu::order
