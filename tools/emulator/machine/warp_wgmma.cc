// SPDX-License-Identifier: MIT
// A warp's registers while wgmma uses them (PTX ISA, wgmma.fence and wgmma.wait_group).
#include "tools/emulator/machine/machine.h"

namespace emu {

using ptx::Operand;

// Only what is accessed behind the first fence can lack one.
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

void Warp::begin_wgmma_fragment(const Operand& op) {
  if (op.kind != Operand::Kind::reg) return;
  WgmmaUse& use = wgmma_[op.reg];
  if (use.accumulators)
    throw Fault(FaultKind::ordering,
                format("wgmma.mma_async reads register %s as a fragment of A while it is the "
                       "accumulator of one that is not known to be complete",
                       name_of(op)));
  if (!use.any() && defined_[op.reg] != ~0u) no_value(op, ~defined_[op.reg]);
  defined_[op.reg] = 0;
  ++use.fragments;
}

void Warp::begin_wgmma_accumulator(const Operand& op, uint32_t shape, bool accumulate) {
  WgmmaUse& use = wgmma_[op.reg];
  if (use.fragments || (use.accumulators && use.shape != shape))
    throw Fault(FaultKind::ordering,
                format("wgmma.mma_async writes register %s while one %s that uses it is not known "
                       "to be complete",
                       name_of(op), use.fragments ? "with it in A" : "of another shape"));
  if (accumulate && !use.any() && defined_[op.reg] != ~0u) no_value(op, ~defined_[op.reg]);
  defined_[op.reg] = 0;
  use.shape = shape;
  ++use.accumulators;
}

void Warp::end_wgmma(const Operand& op) {
  if (op.kind != Operand::Kind::reg) return;
  WgmmaUse& use = wgmma_[op.reg];
  --(use.accumulators ? use.accumulators : use.fragments);
  if (!use.any()) defined_[op.reg] = ~0u;
}

const uint64_t* Warp::wgmma_values(const Operand& op, Row& scratch) const {
  return op.kind == Operand::Kind::reg ? &values_[size_t(op.reg) * 32] : source(op, ~0u, scratch);
}

}  // namespace emu
