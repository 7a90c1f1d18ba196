// SPDX-License-Identifier: MIT
// What the machine tells, handed to those who make something of it. See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/order/hazards.h"

namespace emu {

struct Hazards::Told {
  Hazards& h;

  void operator()(const event::MapRead& e) const { h.tensor_map(e.address, e.lane); }
  void operator()(const event::ColumnsFreed& e) const { h.free_columns(e.cta, e.column, e.count); }

  void operator()(const event::BytesArrived& e) const {
    h.complete_tx(e.op, e.cta, e.barrier, e.phase);
  }
  void operator()(const event::JoinedBulkGroup& e) const { h.join_bulk_group(e.op, e.lanes); }
  void operator()(const event::GroupCommitted& e) const { h.commit_group(e.work, e.lane); }
  void operator()(const event::GroupsAwaited& e) const {
    h.wait_group(e.work, e.lane, e.allowed, e.only_reads);
  }
  void operator()(const event::CopiesAwaited& e) const { h.wait_all(e.lane); }
  void operator()(const event::TensorAwaited& e) const { h.wait_tensor(e.work); }
  void operator()(const event::LoadUsed&) const { h.use_load(); }
  void operator()(const event::WgmmasAwaited& e) const { h.wait_wgmma(e.end); }

  void operator()(const event::BarrierInit& e) const { h.barrier_init(e.cta, e.address, e.lane); }
  void operator()(const event::BarrierInval& e) const { h.barrier_inval(e.cta, e.address); }
  void operator()(const event::BarrierUse& e) const {
    if (e.op == Operation::none)
      h.barrier_use(e.cta, e.address, e.lane);
    else
      h.barrier_use(e.op, e.cta, e.address);
  }
  void operator()(const event::Arrival& e) const {
    h.arrive(e.cta, e.address, e.phase, e.lanes, e.scope, e.relaxed);
  }
  void operator()(const event::WorkArrival& e) const {
    h.arrive(e.op, e.cta, e.address, e.phase, e.last);
  }
  void operator()(const event::PhaseOver& e) const {
    h.observe(e.cta, e.address, e.phase, e.lanes, e.scope, e.relaxed);
  }

  void operator()(const event::NamedArrival& e) const { h.named_arrive(e.id, e.ticket); }
  void operator()(const event::NamedPassed& e) const { h.named_pass(e.id, e.ticket); }
  void operator()(const event::ClusterArrival& e) const { h.cluster_arrive(e.ticket, e.relaxed); }
  void operator()(const event::ClusterPassed& e) const { h.cluster_pass(e.ticket); }
  void operator()(const event::WarpSync& e) const { h.meet(h.me(), e.lanes, true); }
  void operator()(const event::Converged& e) const { h.meet(h.me(), e.lanes, false); }

  static uint64_t key(const Cta* cta, uint64_t address) {
    return cta ? uint64_t(cta->rank) << 32 | address : address;
  }
  void operator()(const event::Released& e) const {
    h.release_at(e.cta, key(e.cta, e.address), e.lane, e.scope, e.relaxed);
  }
  void operator()(const event::Acquired& e) const {
    h.acquire_at(e.cta, key(e.cta, e.address), e.lane, e.scope, e.relaxed);
  }

  void operator()(const event::Fence& e) const { h.fence(e.scope); }
  void operator()(const event::ProxyFence& e) const { h.fence_proxy(e.shared, e.global); }
  void operator()(const event::MapFence& e) const { h.fence_tensor_map(e.address, e.lanes); }
  void operator()(const event::InitFence&) const { h.fence_init(); }
  void operator()(const event::TensorFenceBefore&) const { h.tensor_fence_before(); }
  void operator()(const event::TensorFenceAfter&) const { h.tensor_fence_after(); }

  void operator()(const event::DependentsLaunched&) const { h.dependents_launched(); }
  void operator()(const event::GridsOver&) const { h.grids_over(); }
};

void Hazards::happened(const Event& event) { std::visit(Told{*this}, event); }

void Hazards::access(const LaneAccess& a) {
  if (a.cta)
    shared(*a.cta, uint32_t(a.address), a.bytes, a.use, a.lane, a.same);
  else
    global(a.address, a.bytes, a.use, a.lane, a.value);
}

void Hazards::access(Operation op, const Reach& reach, Use use) {
  if (const auto* s = std::get_if<reach::Shared>(&reach))
    shared(op, s->cta, s->address, s->bytes, use);
  else if (const auto* c = std::get_if<reach::Chunks>(&reach))
    shared(op, c->cta, c->addresses, use);
  else if (const auto* t = std::get_if<reach::Columns>(&reach))
    columns(op, t->cta, t->column, t->count, t->groups, use);
  else
    global(op, std::get<Rows>(reach), use);
}

void Hazards::cta_ended(const Cta& cta) {
  check_exit(cta);
  cta_over(cta);
}

}  // namespace emu
