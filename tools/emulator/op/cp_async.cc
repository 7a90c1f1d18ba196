// SPDX-License-Identifier: MIT
// cp.async: per-thread copies of 4, 8 or 16 bytes from global to shared memory (PTX
// ISA 9.7.9.25.3). A thread's copies and its cp.async.mbarrier.arrive take effect in order, those
// of others in between.
#include <cstring>

#include "tools/emulator/machine/async_work.h"
#include "tools/emulator/machine/mbarrier_access.h"
#include "tools/emulator/op/binders.h"

namespace emu::ops {
namespace {

using glue::Target;
using ptx::Instr;
using ptx::Mod;
using ptx::Step;

AsyncQueue::Chain chain_of(Warp& warp, uint32_t lane) {
  std::vector<AsyncQueue::Chain>& chains = warp.cta.units.copy_chains;
  const uint32_t thread = warp.thread(lane);
  if (thread >= chains.size()) chains.resize(thread + 1);
  AsyncQueue::Chain& chain = chains[thread];
  if (!chain) chain = warp.cta.cluster.async.new_chain();
  return chain;
}

void copy_lane(Warp& warp, const Instr& in, uint32_t lane) {
  const Target to = glue::target(warp, in.ops[0], lane, glue::Where::own, in.opcode);
  const uint64_t from = warp.address(in.ops[1], lane);
  const uint32_t bytes = uint32_t(warp.get(in.ops[2], lane));
  const size_t policy = in.has(Mod::L2_cache_hint);
  if (policy) warp.get(in.ops.back(), lane);
  const uint32_t used = in.ops.size() - policy > 3 ? uint32_t(warp.get(in.ops[3], lane)) : bytes;
  if (used > bytes)
    throw Fault(FaultKind::illegal_instruction,
                format("cp.async with source size %u of %u bytes", used, bytes));
  warp.cta.counters.copy_bytes += bytes;
  auto handle = warp.cta.units.copies.issue(warp.thread(lane));
  const AsyncWork work(warp, Work::cp_async, lane);
  SharedMemory& shared = work.writes(to, bytes);
  const GlobalMemory& memory = work.reads({{from, used, 0, 1}});
  glue::post(warp, chain_of(warp, lane), in, [=, &shared, &memory] {
    uint8_t data[16] = {};  // what the source size leaves out is zero
    if (used) std::memcpy(data, memory.at(from, used, bytes, "cp.async"), used);
    shared.write(to.address, data, bytes, bytes, "cp.async");
    if (used) shared.forget_blank(to.address, memory, from, used, "cp.async");
    handle->read = handle->done = true;
  });
}

Step copy(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) { copy_lane(warp, in, lane); });
  return Step::next;
}

Step commit(Warp& warp, const Instr&, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    warp.cta.units.copies.commit(warp.thread(lane));
    warp.cta.cluster.observers.tell(event::GroupCommitted{Work::cp_async, lane});
  });
  return Step::next;
}

Step wait(Warp& warp, const Instr& in, uint32_t active) {
  bool done = true;
  glue::each_lane(active, [&](uint32_t lane) {
    CopyGroups& copies = warp.cta.units.copies;
    done = done && (in.ops.empty() ? copies.all_complete(warp.thread(lane))
                                   : copies.complete(warp.thread(lane),
                                                     uint32_t(warp.get(in.ops[0], lane)), false));
  });
  if (!done) {
    warp.waiting = [] { return "cp.async groups"; };
    return Step::blocked;
  }
  const Observers& observers = warp.cta.cluster.observers;
  glue::each_lane(active, [&](uint32_t lane) {
    if (in.ops.empty())
      observers.tell(event::CopiesAwaited{lane});
    else
      observers.tell(
          event::GroupsAwaited{Work::cp_async, lane, uint32_t(warp.get(in.ops[0], lane)), false});
  });
  return Step::next;
}

// The arrival comes when all earlier cp.async of the thread are complete. Without .noinc it adds to
// the pending count first, so that it is neutral for the phase.
Step arrive(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    const Target t = glue::target(warp, in, in.ops[0], lane);
    MbarrierAccess::expect_copies(t, lane, in.has(Mod::noinc));
    const AsyncWork work(warp, Work::copy_arrive, lane);
    glue::post(warp, chain_of(warp, lane), in, [=] { work.arrive(t, "cp.async.mbarrier.arrive"); });
  });
  return Step::next;
}

}  // namespace

ptx::Exec bind_cp_async(const Instr& in, std::string& why) {
  const int64_t bytes = in.ops[2].imm;
  if (in.has(Mod::cg) ? bytes == 16 : bytes == 4 || bytes == 8 || bytes == 16) return copy;
  why = "cp.async copies 4, 8 or 16 bytes, with .cg 16";
  return nullptr;
}
ptx::Exec bind_cp_async_commit_group(const Instr&, std::string&) { return commit; }
ptx::Exec bind_cp_async_wait_group(const Instr&, std::string&) { return wait; }
ptx::Exec bind_cp_async_wait_all(const Instr&, std::string&) { return wait; }
ptx::Exec bind_cp_async_mbarrier_arrive(const Instr&, std::string&) { return arrive; }

}  // namespace emu::ops
