// SPDX-License-Identifier: MIT
// What the machine tells of one cluster, handed to those who make something of it. See checks.h.
#include "tools/emulator/order/checks.h"

#include <bit>

#include "tools/emulator/order/accesses.h"
#include "tools/emulator/order/tensor_order.h"
#include "tools/emulator/order/visits.h"

namespace emu {

namespace {

using namespace order;

class ClusterChecks : public Observer {
 public:
  ClusterChecks(const Cluster& cluster, GlobalOrder& global,
                const std::vector<GlobalOrder*>& earlier)
      : now_(cluster),
        meetings_(now_, parties_, operations_, global),
        earlier_grids_(now_, parties_, operations_, reporter_, global, earlier),
        accesses_(now_, parties_, operations_, meetings_, verdict_, reporter_, earlier_grids_,
                  global) {}

  void access(const LaneAccess& a) override {
    if (!a.cta) return accesses_.global(a.address, a.bytes, a.use, a.lane, a.value);
    visits_.access(*a.cta, uint32_t(a.address), 1u << a.lane % every_lane, is_read(a.use));
    accesses_.shared(*a.cta, uint32_t(a.address), a.bytes, a.use, a.lane, a.same);
  }
  void access(const WarpAccess& a) override {
    visits_.access(*a.cta, a.address[std::countr_zero(a.lanes)], a.lanes, is_read(a.use));
    accesses_.shared(a);
  }
  void access(const GlobalAccess& a) override { accesses_.global(a); }
  void begin(Operation op, Work work, uint32_t lane) override { operations_.begin(op, work, lane); }
  void access(Operation op, const Reach& reach, Use use) override {
    if (const auto* s = std::get_if<reach::Shared>(&reach))
      accesses_.shared(op, s->cta, s->address, s->bytes, use);
    else if (const auto* c = std::get_if<reach::Chunks>(&reach))
      accesses_.shared(op, c->cta, c->addresses, use);
    else if (const auto* t = std::get_if<reach::Columns>(&reach))
      accesses_.columns(op, t->cta, t->column, t->count, t->groups, use);
    else
      accesses_.global(op, std::get<Rows>(reach), use);
  }
  void happened(const Event& event) override {
    std::visit([this](const auto& e) { on(e); }, event);
  }
  uint64_t phases_known(const Warp& warp, uint32_t mbarrier) const override {
    const Party& p = parties_.of(warp.cta.rank * now_.warps + warp.index);
    return meetings_.phases_known(p, warp.cta, mbarrier);
  }
  void cta_ended(const Cta& cta) override {
    operations_.check_exit(cta);
    visits_.check_exit(cta);
    earlier_grids_.cta_over(cta);
  }

 private:
  void on(const event::MapRead& e) { accesses_.tensor_map(e.address, e.lane); }
  void on(const event::ColumnsFreed& e) { accesses_.free_columns(e.cta, e.column, e.count); }

  void on(const event::BytesArrived& e) { meetings_.complete_tx(e.op, e.cta, e.barrier, e.phase); }
  void on(const event::JoinedBulkGroup& e) { operations_.join_bulk_group(e.op, e.lanes); }
  void on(const event::GroupCommitted& e) { operations_.commit_group(e.work, e.lane); }
  void on(const event::GroupsAwaited& e) {
    operations_.wait_group(e.work, e.lane, e.allowed, e.only_reads);
  }
  void on(const event::CopiesAwaited& e) { operations_.wait_all(e.lane); }
  void on(const event::TensorAwaited& e) { tensor_order_.wait(e.work); }
  void on(const event::LoadUsed&) { tensor_order_.use_load(); }
  void on(const event::WgmmasAwaited& e) { operations_.wait_wgmma(e.end); }

  void on(const event::BarrierInit& e) { meetings_.barrier_init(e.cta, e.address, e.lane); }
  void on(const event::BarrierInval& e) { meetings_.barrier_inval(e.cta, e.address); }
  void on(const event::BarrierUse& e) {
    if (e.op == Operation::none)
      accesses_.barrier_use(e.cta, e.address, e.lanes);
    else
      accesses_.barrier_use(e.op, e.cta, e.address);
  }
  void on(const event::Arrival& e) {
    visits_.arrival(e.cta, e.address, e.lanes, e.phase);
    meetings_.arrive(e.cta, e.address, e.phase, e.lanes, e.scope, e.relaxed);
  }
  void on(const event::WorkArrival& e) {
    visits_.arrival(e.cta, e.address, operations_.issued(e.op), e.phase);
    meetings_.arrive(e.op, e.cta, e.address, e.phase, e.last);
  }
  void on(const event::PhaseOver& e) {
    visits_.waited(e.cta, e.address, e.phase);
    meetings_.check_in_time(e.cta, e.address, e.lanes, e.suspended_in);
    meetings_.observe(e.cta, e.address, e.phase, e.lanes, e.scope, e.relaxed);
  }

  void on(const event::NamedArrival& e) { meetings_.named_arrive(e.id, e.ticket); }
  void on(const event::NamedPassed& e) { meetings_.named_pass(e.id, e.ticket); }
  void on(const event::ClusterArrival& e) { meetings_.cluster_arrive(e.ticket, e.relaxed); }
  void on(const event::ClusterPassed& e) { meetings_.cluster_pass(e.ticket); }
  void on(const event::WarpSync& e) { parties_.meet(parties_.me(), e.lanes, true); }
  void on(const event::Converged& e) { parties_.meet(parties_.me(), e.lanes, false); }

  void on(const event::Released& e) {
    meetings_.release_at(e.cta, e.address, e.lane, e.scope, e.relaxed);
  }
  void on(const event::Acquired& e) {
    meetings_.acquire_at(e.cta, e.address, e.lane, e.scope, e.relaxed);
  }

  void on(const event::Fence& e) { parties_.fence(e.scope); }
  void on(const event::ProxyFence& e) { parties_.fence_proxy(e.shared, e.global); }
  void on(const event::MapFence& e) { parties_.fence_tensor_map(e.address, e.lanes); }
  void on(const event::InitFence&) { meetings_.fence_init(); }
  void on(const event::TensorFenceBefore&) { tensor_order_.fence_before(); }
  void on(const event::TensorFenceAfter&) { tensor_order_.fence_after(); }

  void on(const event::DependentsLaunched&) { earlier_grids_.dependents_launched(); }
  void on(const event::GridsOver&) { earlier_grids_.grids_over(); }

  Now now_;
  Parties parties_{now_};
  Operations operations_{now_, parties_};
  Visits visits_{now_, parties_};
  Meetings meetings_;
  TensorOrder tensor_order_{now_, parties_};
  Verdict verdict_{now_, parties_, operations_};
  Reporter reporter_{now_, operations_};
  EarlierGrids earlier_grids_;
  Accesses accesses_;
};

}  // namespace

std::shared_ptr<Observer> OrderChecks::watch(const Cluster& cluster) {
  if (!Findings::wanted(Severity::error) && !Findings::wanted(Severity::formal)) return nullptr;
  return std::make_shared<ClusterChecks>(cluster, order_, earlier_);
}

}  // namespace emu
