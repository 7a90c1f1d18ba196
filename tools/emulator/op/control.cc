// SPDX-License-Identifier: MIT
// Branches and ends (PTX ISA 9.7.12, 9.7.20).
#include <bit>

#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

Step branch(Warp& w, const Instr& in, uint32_t active) {
  w.flow.branch(active, in.target, in.reconverge);
  return Step::jumped;
}

// .uni promises that all active threads go the same way; ptxas relies on it.
Step branch_uniform(Warp& w, const Instr& in, uint32_t active) {
  if (uint32_t others = w.flow.here().mask & ~active)
    throw Fault(FaultKind::illegal_instruction,
                format("bra.uni is taken by lanes 0x%08x and not by lanes 0x%08x", active, others));
  return branch(w, in, active);
}

Step end(Warp& w, const Instr&, uint32_t active) {
  w.exit(active);
  return Step::jumped;
}

Step stop(Warp&, const Instr& in, uint32_t) {
  throw Fault(FaultKind::assertion, format("the kernel executed %s", in.opcode));
}

Step beyond(Warp& w, const Instr& in, uint32_t active) {
  const uint32_t lane = uint32_t(std::countr_zero(active));
  throw Fault(FaultKind::illegal_instruction,
              format("brx.idx with the index %llu, beyond the end of its list",
                     (unsigned long long)w.get(in.ops[0], lane)));
}

}  // namespace

Exec bind_brx_idx(const Instr&, std::string&) { return beyond; }
Exec bind_bra(const Instr& in, std::string&) { return in.has(Mod::uni) ? branch_uniform : branch; }
Exec bind_ret(const Instr&, std::string&) { return end; }
Exec bind_exit(const Instr&, std::string&) { return end; }
Exec bind_trap(const Instr&, std::string&) { return stop; }
Exec bind_brkpt(const Instr&, std::string&) { return stop; }

}  // namespace emu::ops
