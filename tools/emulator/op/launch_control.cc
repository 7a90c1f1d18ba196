// SPDX-License-Identifier: MIT
// clusterlaunchcontrol: a running cluster takes over the work of one that has not started (PTX ISA
// 9.7.13.18). The answer is 16 opaque bytes; ours are a word that says yes or no and the number of
// the cluster's first CTA.
//
// A request may fail although some clusters have not started; on hardware it does if work of a
// higher priority waits. Here EMU_ORDER decides: soonest grants requests while a cluster is left,
// latest grants none, random grants half of them. In a grid with clusters of two sizes a request
// takes over one that is as large as its own.
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/bulk.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint32_t answer_bytes = 16;
constexpr uint64_t granted = 0x434C4300, refused = 0x434C4301;  // "CLC" and a number

struct Answer {
  uint64_t low = refused, high = 0;
};

// x has 32 bits, y and z 16 (the largest grids).
Answer ask(Cluster& cluster) {
  if (!cluster.supply || cluster.async.late()) return {};
  const std::optional<Dim3> id = cluster.supply->take(&cluster.size);
  if (!id) return {};
  const Dim3& unit = cluster.launch.cluster;
  return {granted, uint64_t(id->x * unit.x) | uint64_t(id->y * unit.y) << 32 |
                       uint64_t(id->z * unit.z) << 48};
}

void check(Warp& w, const Instr& in, uint32_t address) {
  if (address % answer_bytes)
    throw Fault(FaultKind::misaligned_address,
                format("%s: the answer's address 0x%x is not 16-byte aligned", in.opcode, address));
  if (w.cta.told_no)
    throw Fault(
        FaultKind::illegal_instruction,
        format("%s is undefined after this CTA has seen an earlier request fail", in.opcode));
}

Step try_cancel(Warp& w, const Instr& in, uint32_t active) {
  Cluster& cluster = w.cta.cluster;
  glue::each_lane(active, [&](uint32_t lane) {
    const glue::Target to = glue::target(w, in, in.ops[0], lane);
    const glue::Target barrier = glue::target(w, in, in.ops[1], lane);
    check(w, in, to.address);
    const Answer answer = ask(cluster);
    for (const auto& cta : cluster.ctas) {
      if (!in.has(Mod::multicast_cluster_all) && cta.get() != &w.cta) continue;
      const Delivery d{{cta.get(), to.address}, {cta.get(), barrier.address}};
      cta->mbarriers.state(barrier.address, in.opcode);
      const AsyncWork work(w, Work::copy, lane);
      deliver(w, in, work, d, answer_bytes, [=](SharedMemory& shared) {
        shared.write(d.data.address, &answer, answer_bytes, answer_bytes,
                     "clusterlaunchcontrol.try_cancel");
      });
    }
  });
  return Step::next;
}

Answer answer_of(Warp& w, const Instr& in, uint32_t lane) {
  const Answer a{w.get(in.ops[1], lane), w.get(in.ops[1], lane, 1)};
  if (a.low != granted && a.low != refused)
    throw Fault(FaultKind::illegal_instruction,
                format("%s was given 16 bytes that are no answer of try_cancel", in.opcode));
  return a;
}

Step is_canceled(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t lane) {
    const bool yes = answer_of(w, in, lane).low == granted;
    w.cta.told_no |= !yes;
    w.set(in.ops[0], lane, yes);
  });
  return Step::next;
}

uint32_t coordinate(const Answer& a, uint32_t i) {
  return i == 0 ? uint32_t(a.high) : uint32_t(a.high >> (i == 1 ? 32 : 48) & 0xFFFF);
}

// If the request failed, there is no CTA, so the registers get no value. The fourth register of the
// vector form never gets one.
void give(Warp& w, const Instr& in, const Operand& op, uint32_t lane, uint32_t i) {
  const Answer a = answer_of(w, in, lane);
  if (a.low == granted && i < 3)
    w.set(op, lane, coordinate(a, i));
  else
    w.undefine(op, 1u << lane,
               {i == 3 ? "clusterlaunchcontrol.query_cancel defines no fourth coordinate"
                       : "the clusterlaunchcontrol.try_cancel had failed"});
}

Step first_cta(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t lane) {
    if (in.ops[0].kind == Operand::Kind::vector) {
      for (uint32_t i = 0; i < 4; ++i) give(w, in, in.ops[0].elements[i], lane, i);
      return;
    }
    give(w, in, in.ops[0], lane,
         in.has(Mod::get_first_ctaid_x)   ? 0
         : in.has(Mod::get_first_ctaid_y) ? 1
                                          : 2);
  });
  return Step::next;
}

}  // namespace

Exec bind_clusterlaunchcontrol_try_cancel(const Instr&, std::string&) { return try_cancel; }
Exec bind_clusterlaunchcontrol_query_cancel(const Instr& in, std::string&) {
  return in.has(Mod::is_canceled) ? is_canceled : first_cta;
}

}  // namespace emu::ops
