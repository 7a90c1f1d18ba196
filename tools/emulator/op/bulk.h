// SPDX-License-Identifier: MIT
// Where bulk copies go and whom they signal: shared by cp.async.bulk and cp.async.bulk.tensor.
#pragma once

#include <functional>
#include <vector>

#include "tools/emulator/machine/async_work.h"

namespace emu::ops {

// One CTA's share of a copy to shared memory, and the mbarrier that receives its bytes.
struct Delivery {
  glue::Target data, barrier;
};

// `mask` is the operand of .multicast::cluster or nullptr. Faults on masks, ranks and missing
// barriers.
std::vector<Delivery> deliveries(Warp& warp, const ptx::Instr& in, uint32_t lane,
                                 const ptx::Operand& destination, const ptx::Operand& barrier,
                                 const ptx::Operand* mask);

// Posts `work`, the copy of `bytes` to shared memory: `write`, then complete_tx. Updates (atomic)
// of one place may be under way together, copies may not. shared_bytes: the size in shared memory
// if it is larger than `bytes` (padded types of tensor maps).
void deliver(Warp& warp, const ptx::Instr& in, const AsyncWork& work, const Delivery& d,
             uint32_t bytes, std::function<void(SharedMemory&)> write, Use use = Use::write,
             uint32_t shared_bytes = 0);

// Lanes of one instruction whose operands are the same. For a store without reduction ptxas 13.0
// makes a loop over the different operands (R2UR, R2UR.OR; no loop at all if they are known to be
// alike), so such lanes store once. Loads to shared memory and reductions go lane by lane (ELECT).
struct Issuers {
  uint32_t first, lanes;
};
std::vector<Issuers> issuers(Warp& warp, const ptx::Instr& in, uint32_t active);

// A copy, or an update, out of shared memory to `rows` of global memory.
struct Shipment {
  uint32_t from, bytes;  // in the CTA's shared memory
  std::vector<Rows> rows;
  Use use = Use::write;
};
// Posts the shipment once. It joins the open bulk group of each of the `lanes`, and the observers
// see one piece of work per lane.
void send(Warp& warp, const ptx::Instr& in, uint32_t lanes, const Shipment& s,
          std::function<void(const SharedMemory&, const GlobalMemory&)> write);

// .L2::cache_hint changes nothing here, but its operand has to have a value.
void require_policy(Warp& warp, const ptx::Instr& in, uint32_t lane);

}  // namespace emu::ops
