// SPDX-License-Identifier: MIT
// See early_use.h.
#include "tools/emulator/machine/early_use.h"

#include <cstring>

#include "tools/emulator/machine/report.h"

namespace emu {

namespace {

using ptx::Instr;
using ptx::Operand;
using ptx::Step;
using Owner = Warp::Owner;

// The first register of an operand that other work owns.
const Operand* owned(const Warp& warp, const Operand& op, uint32_t active, Owner owner) {
  if (op.reg != ptx::no_register && warp.owner(op.reg, active) == owner) return &op;
  for (const Operand& e : op.elements)
    if (const Operand* found = owned(warp, e, active, owner)) return found;
  return nullptr;
}

const Operand* owned(const Warp& warp, const Instr& in, uint32_t active, Owner owner) {
  for (const Operand& op : in.ops)
    if (const Operand* found = owned(warp, op, active, owner)) return found;
  return nullptr;
}

void tell(const Warp& warp, const Instr& in, uint32_t active, const Operand& op, const char* work,
          const char* wait) {
  report::formal(report::Rule::early_register,
                 format("register %s is used while a %s that uses it is not known to be complete: "
                        "%s first",
                        warp.name_of(op), work, wait),
                 warp, in, active);
}

void cross_off(std::vector<uint32_t>& slots, const Operand& op) {
  if (op.reg != ptx::no_register) std::erase(slots, op.reg);
  for (const Operand& e : op.elements) cross_off(slots, e);
}

// A tcgen05.ld is over when all of its registers have been used and all earlier ones are over.
void use_loads(Warp& warp, const Instr& in) {
  for (std::vector<uint32_t>& slots : warp.unused_ld)
    for (const Operand& op : in.ops) cross_off(slots, op);
  while (!warp.unused_ld.empty() && warp.unused_ld.front().empty()) {
    warp.cta.cluster.observers.tell(event::LoadUsed{});
    warp.unused_ld.erase(warp.unused_ld.begin());
  }
}

}  // namespace

Step use_early(Warp& warp, const Instr& in, uint32_t active) {
  const Operand* const loaded =
      warp.pending_ld.empty() ? nullptr : owned(warp, in, active, Owner::tensor_ld);
  if (const Operand* op = loaded) {
    tell(warp, in, active, *op, "tcgen05.ld", "tcgen05.wait::ld");
    for (const auto& load : warp.pending_ld) load();
    warp.pending_ld.clear();
  }
  if (!warp.unused_ld.empty()) use_loads(warp, in);
  if (!warp.wgmma_in_flight || std::strncmp(in.opcode, "wgmma.", 6) == 0) return Step::next;
  const Operand* op = owned(warp, in, active, Owner::wgmma);
  if (!op) return Step::next;
  if (!serialise_wgmma(warp)) return Step::blocked;
  tell(warp, in, active, *op, "wgmma.mma_async", "wgmma.wait_group");
  return Step::next;
}

}  // namespace emu
