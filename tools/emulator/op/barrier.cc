// SPDX-License-Identifier: MIT
// Barriers of CTA and cluster, fences, cluster addresses, and instructions that only affect speed
// (PTX ISA 9.7.13, 9.7.9.22, 9.7.19).
#include <map>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

struct Request {
  uint32_t id, threads;
};

// bar.* is always .aligned, barrier.* only where it says so. The operands from `first` to `end`.
Request request(Warp& w, const Instr& in, uint32_t active, bool aligned, size_t first, size_t end) {
  if (aligned) w.require_aligned(active, in.opcode);
  Request r{uint32_t(w.uniform(in.ops[first], active, in.opcode)), NamedBarriers::whole_cta};
  if (end - first < 2) return r;
  r.threads = uint32_t(w.uniform(in.ops[first + 1], active, in.opcode));
  if (r.threads == NamedBarriers::whole_cta)
    throw Fault(FaultKind::barrier_misuse,
                format("%s at barrier %u for 0 threads", in.opcode, r.id));
  return r;
}

// `votes`: the lanes that bring a predicate that is true, of bar.red.
bool pass(Warp& w, const Instr& in, uint32_t active, const Request& r, const uint32_t* votes) {
  NamedBarriers& barriers = w.cta.barriers;
  uint64_t& ticket = w.flow.here().ticket;  // set: these lanes have arrived
  const Observers& observers = w.cta.cluster.observers;
  if (!ticket) {
    if (votes) barriers.contribute(r.id, active, *votes);
    ticket = barriers.arrive(r.id, r.threads, w, active, in.opcode);
    ++w.cta.counters.cta_barriers;
    observers.tell(event::NamedArrival{r.id, ticket});
  }
  if (!barriers.passed(r.id, ticket)) {
    w.waiting = [&in, id = r.id] { return format("%s at barrier %u", in.opcode, id); };
    return false;
  }
  observers.tell(event::NamedPassed{r.id, ticket});
  ticket = 0;
  return true;
}

template <bool Aligned>
Step sync(Warp& w, const Instr& in, uint32_t active) {
  const Request r = request(w, in, active, Aligned, 0, in.ops.size());
  return pass(w, in, active, r, nullptr) ? Step::next : Step::blocked;
}

// bar.red d, a{, b}, c
template <bool Aligned>
Step reduce(Warp& w, const Instr& in, uint32_t active) {
  using Reduction = NamedBarriers::Reduction;
  const Request r = request(w, in, active, Aligned, 1, in.ops.size() - 1);
  const uint32_t votes = w.pred_mask(in.ops.back(), active);
  if (!pass(w, in, active, r, &votes)) return Step::blocked;
  const Reduction how = in.has(Mod::popc)   ? Reduction::popc
                        : in.has(Mod::and_) ? Reduction::all
                                            : Reduction::any;
  const uint64_t result = w.cta.barriers.result(r.id, how);
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [=](uint32_t i) { d[i] = result; });
  return Step::next;
}

template <bool Aligned>
Step arrive(Warp& w, const Instr& in, uint32_t active) {
  const Request r = request(w, in, active, Aligned, 0, in.ops.size());
  const uint64_t ticket = w.cta.barriers.arrive(r.id, r.threads, w, active, in.opcode);
  w.cta.cluster.observers.tell(event::NamedArrival{r.id, ticket});
  ++w.cta.counters.cta_barriers;
  return Step::next;
}

Step cluster_arrive(Warp& w, const Instr& in, uint32_t active) {
  if (in.has(Mod::aligned)) w.require_aligned(active, in.opcode);
  w.cta.cluster.barrier.arrive(w, active);
  const uint64_t ticket = w.cluster_ticket[std::countr_zero(active)];
  w.cta.cluster.observers.tell(event::ClusterArrival{ticket, in.has(Mod::relaxed)});
  ++w.cta.counters.cluster_barriers;
  return Step::next;
}

Step cluster_wait(Warp& w, const Instr& in, uint32_t active) {
  if (in.has(Mod::aligned)) w.require_aligned(active, in.opcode);
  if (w.cta.cluster.barrier.wait(w, active)) {
    const uint64_t ticket = w.cluster_ticket[std::countr_zero(active)];
    w.cta.cluster.observers.tell(event::ClusterPassed{ticket});
    return Step::next;
  }
  w.waiting = [] { return "barrier.cluster.wait"; };
  return Step::blocked;
}

// Program order is memory order here: one host thread runs a cluster, and accesses to global memory
// are acquire and release. What a fence orders is for the hazard checks to know. No manual says
// whether it waits for copies under way on hardware: EMU_FENCE_WAITS chooses.
template <Scope S>
Step order(Warp& w, const Instr&, uint32_t) {
  if (S != Scope::cta && settings().fence_waits) {
    while (w.cta.cluster.async.complete_one()) {
    }
  }
  w.cta.cluster.observers.tell(event::Fence{S});
  return Step::next;
}

// fence.proxy.tensormap::generic.acquire [a], 128: of one map, mostly the same in all lanes.
Step map_order(Warp& w, const Instr& in, uint32_t active) {
  std::map<uint64_t, uint32_t> lanes;
  for_lanes(active, [&](uint32_t i) { lanes[w.address(in.ops[0], i)] |= 1u << i; });
  for (const auto& [map, of] : lanes) w.cta.cluster.observers.tell(event::MapFence{map, of});
  return Step::next;
}

template <bool Shared, bool Global>
Step proxy_order(Warp& w, const Instr&, uint32_t) {
  w.cta.cluster.observers.tell(event::ProxyFence{Shared, Global});
  return Step::next;
}

Step init_order(Warp& w, const Instr&, uint32_t) {
  w.cta.cluster.observers.tell(event::InitFence{});
  return Step::next;
}

Step nothing(Warp&, const Instr&, uint32_t) { return Step::next; }

// One grid runs at a time, so what griddepcontrol.wait waits for is over, and nothing depends on
// launch_dependents. What a warp loads before it has waited is counted.
Step launch_dependents(Warp& w, const Instr&, uint32_t) {
  w.cta.cluster.observers.tell(event::DependentsLaunched{});
  return Step::next;
}

Step wait_for_grids(Warp& w, const Instr&, uint32_t) {
  w.cta.cluster.observers.tell(event::GridsOver{});
  ++w.cta.counters.dependency_waits;
  w.waited_for_grids = true;
  return Step::next;
}

Step sleep(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) { w.get(in.ops[0], i); });
  return Step::next;
}

constexpr uint64_t rank_mask = 0xFFull << SharedMemory::rank_shift;

// mapa: the address's counterpart in another CTA of the cluster. Rank bits are replaced (measured:
// H200); a generic address keeps its window.
Step map_address(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row sa, sb;
  const uint64_t* a = w.source(in.ops[1], active, sa);
  const uint64_t* b = w.source(in.ops[2], active, sb);
  size_t size = w.cta.cluster.ctas.size();
  for_lanes(active, [&](uint32_t i) {
    if (uint32_t(b[i]) >= size)
      throw Fault(FaultKind::illegal_address,
                  format("mapa to rank %u in a cluster of %zu CTAs", uint32_t(b[i]), size));
  });
  uint64_t* d = w.destination(in.ops[0], active);
  for_lanes(active, [=](uint32_t i) {
    d[i] = (a[i] & ~rank_mask) | uint64_t(uint32_t(b[i])) << SharedMemory::rank_shift;
  });
  return Step::next;
}

uint32_t rank_of(uint64_t address) {
  return uint32_t((address & rank_mask) >> SharedMemory::rank_shift);
}

}  // namespace

Exec bind_bar_sync(const Instr&, std::string&) { return sync<true>; }
Exec bind_bar_arrive(const Instr&, std::string&) { return arrive<true>; }
Exec bind_barrier_sync(const Instr& in, std::string&) {
  return in.has(Mod::aligned) ? sync<true> : sync<false>;
}
Exec bind_barrier_arrive(const Instr& in, std::string&) {
  return in.has(Mod::aligned) ? arrive<true> : arrive<false>;
}
Exec bind_bar_red(const Instr&, std::string&) { return reduce<true>; }
Exec bind_barrier_red(const Instr& in, std::string&) {
  return in.has(Mod::aligned) ? reduce<true> : reduce<false>;
}
// .cta is the default and changes nothing.
Exec bind_bar_cta_sync(const Instr&, std::string&) { return sync<true>; }
Exec bind_bar_cta_arrive(const Instr&, std::string&) { return arrive<true>; }
Exec bind_bar_cta_red(const Instr&, std::string&) { return reduce<true>; }
Exec bind_barrier_cta_sync(const Instr& in, std::string& why) { return bind_barrier_sync(in, why); }
Exec bind_barrier_cta_arrive(const Instr& in, std::string& why) {
  return bind_barrier_arrive(in, why);
}
Exec bind_barrier_cta_red(const Instr& in, std::string& why) { return bind_barrier_red(in, why); }
Exec bind_barrier_cluster_arrive(const Instr&, std::string&) { return cluster_arrive; }
Exec bind_barrier_cluster_wait(const Instr&, std::string&) { return cluster_wait; }

Exec bind_mapa(const Instr&, std::string&) { return map_address; }
Exec bind_getctarank(const Instr&, std::string&) {
  return map1<uint32_t, uint64_t, [](uint64_t a) { return rank_of(a); }>;
}

Exec bind_membar(const Instr& in, std::string&) {
  return in.has(Mod::cta) ? order<Scope::cta> : order<Scope::gpu>;
}
Exec bind_fence(const Instr& in, std::string&) {
  if (in.has(Mod::mbarrier_init)) return init_order;
  if (in.has(Mod::cta)) return order<Scope::cta>;
  // .sync_restrict is treated as the full fence. A program that relies on what .sync_restrict does
  // not order is not reported.
  return in.has(Mod::cluster) ? order<Scope::cluster> : order<Scope::gpu>;
}
Exec bind_fence_proxy(const Instr& in, std::string&) {
  if (in.has(Mod::tensormap_generic) && in.has(Mod::acquire)) return map_order;
  if (!in.has(Mod::async) && !in.has(Mod::async_generic)) return nothing;
  if (in.has(Mod::global)) return proxy_order<false, true>;
  const bool shared = in.has(Mod::shared_cta) || in.has(Mod::shared_cluster);
  return shared ? proxy_order<true, false> : proxy_order<true, true>;
}
Exec bind_griddepcontrol(const Instr& in, std::string&) {
  return in.has(Mod::wait) ? wait_for_grids : launch_dependents;
}
Exec bind_nanosleep(const Instr&, std::string&) { return sleep; }

}  // namespace emu::ops
