// SPDX-License-Identifier: MIT
// A warp's registers while wgmma uses them (PTX ISA, wgmma.fence and wgmma.wait_group).
#include <algorithm>

#include "tools/emulator/machine/machine.h"

namespace emu {

using ptx::Operand;

// A register needs another wgmma.fence only if it was accessed after the first one, so `touched_`
// starts here.
void Warp::wgmma_fence() {
  ++wgmma_fences_;
  touched_.resize(defined_.size());
  wgmma_.resize(defined_.size());
}

bool Warp::needs_wgmma_fence(const Operand& op) const {
  if (wgmma_fences_ == 0)
    throw Fault(FaultKind::ordering, "wgmma.mma_async without a wgmma.fence before it");
  return op.kind == Operand::Kind::reg && touched_[op.reg] == wgmma_fences_;
}

uint32_t Warp::begin_wgmma_fragment(const Operand& op) {
  if (op.kind != Operand::Kind::reg) return 0;
  WgmmaUse& use = wgmma_[op.reg];
  if (use.accumulators)
    throw Fault(FaultKind::ordering,
                format("wgmma.mma_async reads register %s as a fragment of A while it is the "
                       "accumulator of one that is not known to be complete",
                       name_of(op)));
  if (!use.any()) use.missing = ~defined_[op.reg];
  defined_[op.reg] = 0;
  ++use.fragments;
  return use.missing;
}

void Warp::begin_wgmma_accumulator(const Operand& op, uint32_t shape, bool accumulate) {
  WgmmaUse& use = wgmma_[op.reg];
  if (use.fragments || (use.accumulators && use.shape != shape))
    throw Fault(FaultKind::ordering,
                format("wgmma.mma_async writes register %s while one %s that uses it is not known "
                       "to be complete",
                       name_of(op), use.fragments ? "with it in A" : "of another shape"));
  if (!use.any()) use.missing = accumulate ? ~defined_[op.reg] : 0;
  if (use.missing) why_.try_emplace(named(op), Reason{computed_from({use.missing, &op})});
  defined_[op.reg] = 0;
  use.shape = shape;
  ++use.accumulators;
}

void Warp::lose_wgmma(const Operand& op, bool accumulate, uint32_t lost, const std::string& why) {
  WgmmaUse& use = wgmma_[op.reg];
  use.missing = (accumulate ? use.missing : 0) | lost;
  if (lost) why_[named(op)] = {why};
}

void Warp::end_wgmma(const Operand& op) {
  if (op.kind != Operand::Kind::reg) return;
  WgmmaUse& use = wgmma_[op.reg];
  --(use.accumulators ? use.accumulators : use.fragments);
  if (!use.any()) defined_[op.reg] = ~use.missing;
}

const uint64_t* Warp::wgmma_values(const Operand& op, Row& scratch) const {
  return op.kind == Operand::Kind::reg ? &values_[size_t(op.reg) * 32] : source(op, ~0u, scratch);
}

void Warpgroup::forget() {
  uint64_t least = members[0].released;
  for (const Member& m : members) least = std::min(least, m.released);
  for (; first < least; ++first) operations.pop_front();
}

namespace {

void release_registers(Warp& warp, const WgmmaOperation& op) {
  --warp.wgmma_in_flight;
  if (op.command.a_in_registers)
    for (const Operand& r : op.fragments()) warp.end_wgmma(r);
  for (const Operand& r : op.accumulators()) warp.end_wgmma(r);
}

std::string waits_for(const WgmmaOperation& op) {
  std::string text = format("the wgmma.mma_async of PTX line %u", op.in->pos.line);
  if (const uint32_t absent = ~op.issued & ((1u << wgmma_warps) - 1))
    text += format(", which warps 0x%x of the warpgroup have not issued", absent);
  return text;
}

}  // namespace

uint32_t member_of(const Warp& warp) { return warp.index % wgmma_warps; }

bool release_wgmma(Warp& warp, Warpgroup& group, uint64_t end) {
  Warpgroup::Member& me = group.members[member_of(warp)];
  for (uint64_t n = me.released; n < end; ++n)
    if (!group.operation(n).done) {
      warp.waiting = [&group, n] { return waits_for(group.operation(n)); };
      return false;
    }
  for (; me.released < end; ++me.released) release_registers(warp, group.operation(me.released));
  return true;
}

bool serialise_wgmma(Warp& warp) {
  Warpgroup& group = warp.cta.warpgroups[warp.index / wgmma_warps];
  return release_wgmma(warp, group, group.members[member_of(warp)].issued);
}

}  // namespace emu
