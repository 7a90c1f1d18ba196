// SPDX-License-Identifier: MIT
// See async_work.h.
#include "tools/emulator/machine/async_work.h"

#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/machine/report.h"

namespace emu {

const SharedMemory& AsyncWork::reads(const Target& from, uint32_t bytes) const {
  cluster_->observers.access(op_, reach::Shared{*from.cta, from.address, bytes}, Use::read);
  return from.cta->shared(Teller{});
}

const SharedMemory& AsyncWork::reads(Cta& cta, const std::vector<uint32_t>& chunks) const {
  cluster_->observers.access(op_, reach::Chunks{cta, chunks}, Use::read);
  return cta.shared(Teller{});
}

SharedMemory& AsyncWork::writes(const Target& to, uint32_t bytes, Use use) const {
  cluster_->observers.access(op_, reach::Shared{*to.cta, to.address, bytes}, use);
  return to.cta->shared(Teller{});
}

const GlobalMemory& AsyncWork::global(const std::vector<Rows>& all, Use use) const {
  for (const Rows& rows : all) cluster_->observers.access(op_, rows, use);
  return cluster_->launch.memory.get(Teller{});
}

const GlobalMemory& AsyncWork::reads(const std::vector<Rows>& all) const {
  return global(all, Use::read);
}

const GlobalMemory& AsyncWork::writes(const std::vector<Rows>& all, Use use) const {
  return global(all, use);
}

TensorMemory& AsyncWork::columns(const reach::Columns& which, Use use) const {
  cluster_->observers.access(op_, which, use);
  return which.cta.tensor_memory(Teller{});
}

Memories AsyncWork::memories(const std::vector<Cta*>& group, const Check& check) const {
  Memories all;
  for (Cta* cta : group) all.push_back({cta->shared(Teller{}), cta->tensor_memory(Teller{})});
  const std::vector<Footprint> footprints = check(all);
  for (size_t i = 0; i < group.size(); ++i) {
    const Footprint& f = footprints[i];
    reads(*group[i], f.chunks);
    for (const Footprint::Columns& r : f.reads)
      columns({*group[i], r.column, r.count, r.groups}, Use::read);
    columns({*group[i], f.column, f.columns, f.groups}, Use::write);
  }
  return all;
}

const void* AsyncWork::tensor_map(const Warp& warp, uint32_t lane, uint64_t address,
                                  const char* who) {
  warp.cta.cluster.observers.tell(event::MapRead{address, lane});
  const GlobalMemory& memory = warp.cta.cluster.launch.memory.get(Teller{});
  memory.require_values(address, sizeof(EncodedMap), who);
  return memory.at(address, sizeof(EncodedMap), 64, who);
}

void AsyncWork::signals(const Target& barrier) const {
  cluster_->observers.tell(event::BarrierUse{*barrier.cta, barrier.address, 0, op_});
}

void AsyncWork::joins_bulk_group(uint32_t lanes) const {
  cluster_->observers.tell(event::JoinedBulkGroup{op_, lanes});
}

void AsyncWork::complete_tx(const Target& barrier, uint32_t bytes, const char* who) const {
  const uint64_t phase = barrier.cta->mbarriers.state(barrier.address, who).phase;
  cluster_->observers.tell(event::BytesArrived{op_, *barrier.cta, barrier.address, phase});
  barrier.cta->mbarrier_table(Teller{}).complete_tx(barrier.address, bytes);
}

// The last arrivals of a ring, which nobody waits for, may come after mbarrier.inval. On hardware
// they count in bytes that hold nothing; where something else has been stored since, they destroy
// it.
bool AsyncWork::is_late(const Target& barrier, const char* who) const {
  const Cta& cta = *barrier.cta;
  if (cta.mbarriers.live(barrier.address) || !cta.mbarriers.was_live(barrier.address)) return false;
  const SharedMemory& shared = barrier.cta->shared(Teller{});
  for (uint32_t i = 0; i < 8; ++i)
    if (shared.has_value(barrier.address + i, 1, who)) return false;
  report::formal_effect(
      report::Rule::late_arrival,
      format("the arrival of a %s at the mbarrier at 0x%x comes after mbarrier.inval: a wait for "
             "its phase comes first",
             who, barrier.address),
      *cluster_);
  return true;
}

void AsyncWork::arrive(const Target& barrier, const char* who, bool last) const {
  if (is_late(barrier, who)) return;
  const uint64_t phase = barrier.cta->mbarriers.state(barrier.address, who).phase;
  cluster_->observers.tell(event::WorkArrival{op_, *barrier.cta, barrier.address, phase, last});
  barrier.cta->mbarrier_table(Teller{}).arrive(barrier.address);
}

}  // namespace emu
