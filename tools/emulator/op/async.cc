// SPDX-License-Identifier: MIT
// st.async and red.async (PTX ISA 9.7.9.14, 9.7.13.6): a store or an update of another CTA's shared
// memory that an mbarrier beside it counts in bytes. They belong to the generic proxy; what they
// write is there once the phase is over.
#include <vector>

#include "tools/emulator/machine/async_work.h"
#include "tools/emulator/machine/mbarrier_access.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/reduction.h"

namespace emu::ops {

namespace {

using glue::Target;

// Address and mbarrier of one lane.
struct Place {
  Target data, barrier;
};

Place place(Warp& w, const Instr& in, uint32_t lane, uint32_t bytes) {
  const bool generic = !in.has(Mod::shared_cluster) && !in.has(Mod::shared_cta);
  const auto where = in.has(Mod::shared_cta) ? glue::Where::own
                     : generic               ? glue::Where::generic_cluster
                                             : glue::Where::cluster;
  const auto at = [&](const Operand& op) {
    // ptxas takes 32-bit registers without a state space: those hold shared addresses.
    const bool narrow = op.reg != ptx::no_register && ptx::bits_of(op.declared) == 32;
    return glue::target(w, op, lane, generic && narrow ? glue::Where::cluster : where, in.opcode);
  };
  const Place p{at(in.ops[0]), at(in.ops[2])};
  if (p.data.address % bytes)
    throw Fault(FaultKind::misaligned_address,
                format("%s of %u bytes at shared address 0x%x, which is no multiple of its size",
                       in.opcode, bytes, p.data.address));
  if (p.data.cta != p.barrier.cta)
    throw Fault(FaultKind::illegal_instruction,
                format("%s to CTA %u with an mbarrier in CTA %u: both have to be in one CTA",
                       in.opcode, p.data.cta->rank, p.barrier.cta->rank));
  glue::require_running(w.cta, *p.data.cta, in.opcode);
  p.barrier.cta->mbarriers.state(p.barrier.address, in.opcode);
  return p;
}

// Posts `effect`, then counts its bytes.
template <class Effect>
void post(Warp& w, const Instr& in, uint32_t lane, const Place& p, uint32_t bytes, Use use,
          Effect effect) {
  const Cta* from = &w.cta;
  const char* who = in.opcode;
  MbarrierAccess::use(p.barrier, 1u << lane);
  const AsyncWork work(w, Work::store_async, lane);
  SharedMemory& there = work.writes(p.data, bytes, use);
  glue::post(w, w.cta.cluster.async.new_chain(), in, [=, &there] {
    glue::require_running(*from, *p.data.cta, who);
    effect(there);
    work.complete_tx(p.barrier, bytes, who);
  });
}

Step store(Warp& w, const Instr& in, uint32_t active) {
  const bool vector = in.ops[1].kind == Operand::Kind::vector;
  const uint32_t size = ptx::bits_of(in.type()) / 8;
  glue::each_lane(active, [&](uint32_t lane) {
    std::vector<uint64_t> words;
    if (vector)
      for (const Operand& e : in.ops[1].elements) words.push_back(w.get(e, lane));
    else
      words.push_back(w.get(in.ops[1], lane));
    const uint32_t bytes = size * uint32_t(words.size());
    const Place p = place(w, in, lane, bytes);
    post(w, in, lane, p, bytes, Use::write, [=](SharedMemory& shared) {
      for (uint32_t i = 0; i < words.size(); ++i)
        shared.write(p.data.address + i * size, &words[i], size, size, "st.async");
    });
  });
  return Step::next;
}

Step update(Warp& w, const Instr& in, uint32_t active) {
  const uint32_t size = ptx::bits_of(in.type()) / 8;
  const Update f = reduction_of(in, in.type(), false);
  glue::each_lane(active, [&](uint32_t lane) {
    const uint64_t value = w.get(in.ops[1], lane);
    const Place p = place(w, in, lane, size);
    post(w, in, lane, p, size, Use::atomic, [=](SharedMemory& shared) {
      uint64_t old = 0;
      shared.read(p.data.address, &old, size, size, "red.async");
      const uint64_t now = f(old, value, 0);
      shared.write(p.data.address, &now, size, size, "red.async");
    });
  });
  return Step::next;
}

}  // namespace

Exec bind_st_async(const Instr&, std::string&) { return store; }
Exec bind_red_async(const Instr&, std::string&) { return update; }

}  // namespace emu::ops
