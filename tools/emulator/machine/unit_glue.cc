// SPDX-License-Identifier: MIT
// See unit_glue.h.
#include "tools/emulator/machine/unit_glue.h"

#include <utility>

#include "tools/emulator/machine/report.h"

namespace emu::glue {

using ptx::Mod;
using ptx::Space;

Target target(const Warp& warp, const ptx::Operand& op, uint32_t lane, Where where,
              const char* who) {
  uint64_t address = warp.address(op, lane);
  const bool generic = where == Where::generic_own || where == Where::generic_cluster;
  // A shared variable's name stands for its address in the shared window already.
  if (generic && !op.base_is_symbol) {
    if (address::space_of(address) != Space::shared_cluster)
      throw Fault(FaultKind::illegal_address,
                  format("%s at generic address 0x%llx, which is not in shared memory", who,
                         (unsigned long long)address));
    address = address::from_generic(Space::shared_cluster, address);
  }
  Target t;
  t.cta = &warp.cta.cluster.cta_of(uint32_t(address), &t.address, who);
  if ((where == Where::own || where == Where::generic_own) && t.cta != &warp.cta)
    throw Fault(
        FaultKind::illegal_address,
        format("%s at shared address 0x%08x, which belongs to the CTA of rank %u; this one has "
               "rank %u and the instruction wants its own",
               who, uint32_t(address), t.cta->rank, warp.cta.rank));
  return t;
}

Target target(const Warp& warp, const ptx::Instr& in, const ptx::Operand& op, uint32_t lane) {
  if (in.has(Mod::shared_cluster)) return target(warp, op, lane, Where::cluster, in.opcode);
  const bool own = in.has(Mod::shared) || in.has(Mod::shared_cta);
  return target(warp, op, lane, own ? Where::own : Where::generic_own, in.opcode);
}

void require_running(const Cta& from, const Cta& to, const char* who) {
  if (&from == &to || !to.ended()) return;
  throw Fault(
      FaultKind::ordering,
      format("%s reaches into the CTA of rank %u, which has ended: a cluster barrier at the end "
             "keeps it",
             who, to.rank));
}

std::string Posted::name(const Warp& warp, const ptx::Instr& in) {
  const Dim3& block = warp.cta.id;
  return format("%s of PTX line %u, issued by warp %u of block (%u,%u,%u)", in.opcode, in.pos.line,
                warp.index, block.x, block.y, block.z);
}

Actor Posted::begin() {
  Cluster& cluster = warp_->cta.cluster;
  cluster.observers.each([this](Observer& o) { o.completing(number_); });
  return std::exchange(cluster.actor, actor_);
}

void Posted::end(const Actor& interrupted) {
  Cluster& cluster = warp_->cta.cluster;
  cluster.actor = interrupted;
  cluster.observers.each([this](Observer& o) { o.completed(number_); });
  ++cluster.progress;
}

void Posted::rethrow(const Fault& fault) const {
  if (fault.located) throw;  // the one that is being handled
  throw report::located_effect(fault, *warp_, *in_, active_);
}

}  // namespace emu::glue
