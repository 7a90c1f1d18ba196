// SPDX-License-Identifier: MIT
// The wgmma operations of four warps: a warpgroup issues each together, and it is done as one.
//
// An operation starts when the last of the four warps has issued it, takes effect in the order of
// issue, and is known to be done to a warp whose wgmma.wait_group covers it. The wait of any of the
// four shows that the shared memory was read, but a warp's registers are free only after its own
// wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tools/emulator/hardware/async_queue.h"
#include "tools/emulator/hardware/wgmma.h"
#include "tools/emulator/ptx/module.h"

namespace emu {

struct WgmmaOperation {
  const ptx::Instr* in;
  WgmmaCommand command;
  const SharedMemory* operands = nullptr;
  std::vector<uint32_t> chunks;  // of shared memory, in flight until `observed`
  Fragments a;
  WgmmaMissing missing = {};
  uint32_t issued = 0;  // warps, a bit each
  bool done = false, observed = false;

  const std::vector<ptx::Operand>& accumulators() const { return in->ops[0].elements; }
  const std::vector<ptx::Operand>& fragments() const { return in->ops[1].elements; }  // of A
};

struct Warpgroup {
  struct Member {
    uint64_t issued = 0, released = 0;  // operations, counted from the CTA's start
    std::deque<uint64_t> groups;        // committed and not waited for: `issued` at the commit
  };
  AsyncQueue::Chain chain = 0;  // 0 = not yet used
  Member members[wgmma_warps];
  uint64_t first = 0;  // the number of operations.front()
  std::deque<std::shared_ptr<WgmmaOperation>> operations;

  WgmmaOperation& operation(uint64_t number) { return *operations[size_t(number - first)]; }
  void forget();  // operations that all four warps have waited for
};

class Warp;
uint32_t member_of(const Warp& warp);  // its place in its warpgroup

// Frees the registers of this warp's operations before number `end`; false: one is not done, and
// Warp::waiting says which.
bool release_wgmma(Warp& warp, Warpgroup& group, uint64_t end);
// The same for all that it has issued.
bool serialise_wgmma(Warp& warp);

}  // namespace emu
