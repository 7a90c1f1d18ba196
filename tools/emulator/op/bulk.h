// SPDX-License-Identifier: MIT
// Where bulk copies go and whom they signal: shared by cp.async.bulk and cp.async.bulk.tensor.
#pragma once

#include <functional>
#include <vector>

#include "tools/emulator/machine/unit_glue.h"

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

// Posts the copy `op` of `bytes` to shared memory: `write`, then complete_tx. Updates (atomic) of one
// place may be under way together, copies may not. shared_bytes: where it takes more there (padded
// types of tensor maps).
void deliver(Warp& warp, const ptx::Instr& in, Hazards::Operation op, const Delivery& d,
             uint32_t bytes, std::function<void(SharedMemory&)> write, Use use = Use::write,
             uint32_t shared_bytes = 0);

// Posts a copy out of the CTA's shared memory that belongs to the thread's open bulk group.
Hazards::Operation send(Warp& warp, const ptx::Instr& in, uint32_t lane, uint32_t shared_address,
                        uint32_t bytes, std::function<void(const SharedMemory&)> write);

// .L2::cache_hint changes nothing here, but its operand has to have a value.
void require_policy(Warp& warp, const ptx::Instr& in, uint32_t lane);

}  // namespace emu::ops
