// SPDX-License-Identifier: MIT
// Asynchronous work of the instruction that executes. When it is issued, it declares what it will
// read, write and signal, and the observers are told. Each declaration returns an object, which is
// the only way to the bytes.
#pragma once

#include <functional>
#include <vector>

#include "tools/emulator/hardware/tensor_core.h"
#include "tools/emulator/machine/unit_glue.h"

namespace emu {

class AsyncWork {
 public:
  using Target = glue::Target;

  // Issued by a lane, or by every_lane.
  AsyncWork(const Warp& warp, Work work, uint32_t lane)
      : cluster_(&warp.cta.cluster), op_(cluster_->observers.begin(work, lane)) {}

  // ---- when it is issued -----------------------------------------------------------------------
  const SharedMemory& reads(const Target& from, uint32_t bytes) const;
  const SharedMemory& reads(Cta& cta, const std::vector<uint32_t>& chunks) const;
  SharedMemory& writes(const Target& to, uint32_t bytes, Use use = Use::write) const;
  const GlobalMemory& reads(const std::vector<Rows>& all) const;
  const GlobalMemory& writes(const std::vector<Rows>& all, Use use = Use::write) const;
  // Tells the observers of an access to columns of tensor memory. Returns the CTA's tensor memory.
  TensorMemory& columns(const reach::Columns& which, Use use) const;
  // tcgen05.mma and cp, which work on a pair of CTAs, or on one: `check` says what they touch in
  // each.
  using Check = std::function<std::vector<Footprint>(const Memories&)>;
  Memories memories(const std::vector<Cta*>& group, const Check& check) const;
  void signals(const Target& barrier) const;
  // A tensor map in global memory, which work of the lane reads.
  static const void* tensor_map(const Warp& warp, uint32_t lane, uint64_t address, const char* who);
  // It belongs to the open bulk group of its thread; see event::JoinedBulkGroup.
  void joins_bulk_group(uint32_t lanes) const;

  // ---- in its effect ---------------------------------------------------------------------------
  // Its bytes have arrived. `who`: the opcode.
  void complete_tx(const Target& barrier, uint32_t bytes, const char* who) const;
  // Arrives for Work::commit and Work::copy_arrive. `last`: it is the last arrival of the work.
  void arrive(const Target& barrier, const char* who, bool last = true) const;

 private:
  const GlobalMemory& global(const std::vector<Rows>& all, Use use) const;
  bool is_late(const Target& barrier, const char* who) const;
  Cluster* cluster_;
  Operation op_;
};

}  // namespace emu
