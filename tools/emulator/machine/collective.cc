// SPDX-License-Identifier: MIT
// How the lanes of a warp come together for one instruction: .aligned, or .sync with a membermask.
#include <cstring>

#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/report.h"

namespace emu {

using ptx::Operand;

namespace {

// Where ptxas 13.0 does not know that the warp is converged, it puts a WARPSYNC.ALL before each
// .aligned instruction and before bar.*, which is always aligned. In SASS of sm_90a and sm_100a:
// before bar, barrier.cluster, setmaxnreg, ldmatrix, stmatrix, mma, wgmma, tensormap.cp_fenceproxy,
// tcgen05.alloc, dealloc, relinquish_alloc_permit, ld and st. Not before tcgen05.wait.
bool waits_for_warp(const ptx::Instr& in) {
  if (in.has(ptx::Mod::aligned)) return std::strncmp(in.opcode, "tcgen05.wait", 12) != 0;
  return std::strncmp(in.opcode, "bar.", 4) == 0 && std::strcmp(in.opcode, "bar.warp.sync") != 0;
}

}  // namespace

bool Warp::align(const ptx::Instr& in, uint32_t& active) {
  Divergence::Fragment& me = flow.here();
  if (active != me.mask || !waits_for_warp(in)) return true;
  uint32_t here = active;
  for (const auto& f : flow.fragments) {
    if (&f == &me || !f.aligned) continue;
    if (f.pc != me.pc) return true;  // lanes at two places: require_aligned() throws the Fault
    here |= f.mask;
  }
  // Lanes that are parked until the lanes here come have already executed this instruction, so the
  // lanes here do not wait for them.
  if (flow.parked_for(here)) return true;
  if (const uint32_t missing = live() & ~here) {
    me.aligned = true;
    waiting = [&in, missing] {
      return format("%s, which is .aligned, for lanes 0x%08x", in.opcode, missing);
    };
    return false;
  }
  flow.merge();
  active = flow.here().mask;
  return true;
}

void Warp::require_aligned(uint32_t active, const char* opcode) const {
  if (active == live()) return cta.cluster.observers.tell(event::Converged{active});
  throw Fault(
      FaultKind::illegal_instruction,
      format("%s is .aligned: all live lanes 0x%08x of the warp have to execute it together, "
             "here are 0x%08x",
             opcode, live(), active) +
          report::elsewhere(*this, active));
}

void Warp::require_whole(uint32_t active, const char* opcode) const {
  require_aligned(active, opcode);
  if (active == ~0u) return;
  throw Fault(FaultKind::illegal_instruction,
              format("%s needs all 32 lanes, here are 0x%08x", opcode, active));
}

void Warp::require_all(uint32_t active, const char* opcode) const {
  require_aligned(active, opcode);
  if (active == lanes) return;
  throw Fault(FaultKind::illegal_instruction,
              format("%s is executed by lanes 0x%08x: all threads of the warp have to, and lanes "
                     "0x%08x have ended",
                     opcode, active, lanes & ~active));
}

uint32_t Warp::gather(const ptx::Instr& in, const Operand& membermask, uint32_t active,
                      ptx::Step& otherwise, bool any_place) {
  otherwise = ptx::Step::jumped;
  const uint32_t member = uint32_t(get(membermask, uint32_t(std::countr_zero(active))));
  uint32_t alike = 0;
  for_lanes(active, [&](uint32_t lane) {
    alike |= uint32_t(uint32_t(get(membermask, lane)) == member) << lane;
  });
  if (const uint32_t others = active & ~alike) return flow.split(others), 0;
  otherwise = ptx::Step::blocked;
  if (uint32_t stranger = active & ~member)
    throw Fault(FaultKind::illegal_instruction,
                format("%s is executed by lanes 0x%08x, which its membermask 0x%08x does not name",
                       in.opcode, stranger, member));
  uint32_t need = member & live(), here = active;
  Divergence::Fragment& me = flow.here();
  if (uint32_t absent = need & me.mask & ~active)
    throw Fault(FaultKind::illegal_instruction,
                format("%s waits for lanes 0x%08x, which stand here with their guard false",
                       in.opcode, absent));
  const auto& code = cta.cluster.launch.function->code;
  auto together = [&](const Divergence::Fragment& f) {
    return f.member == member && (f.pc == me.pc || (any_place && code[f.pc].exec == in.exec));
  };
  for (const auto& f : flow.fragments)
    if (&f != &me && together(f)) here |= f.gathered;
  if (need & ~here) {
    me.member = member;
    me.gathered = active;
    waiting = [&in, missing = need & ~here] {
      return format("%s for lanes 0x%08x", in.opcode, missing);
    };
    // Lanes need not reconverge before they meet at another bar.warp.sync (measured: H200).
    if (any_place) flow.unpark(need & ~here);
    return 0;
  }
  for (auto& f : flow.fragments) {
    if (&f == &me || !together(f)) continue;
    f.member = 0;
    f.blocked_at = Divergence::runnable;
    ++f.pc;
  }
  me.member = 0;
  cta.cluster.observers.tell(event::Converged{here & need});
  return here & need;
}

}  // namespace emu
