// SPDX-License-Identifier: MIT
// tcgen05.cp, mma, commit and fences. cp, mma and commit that a CTA issues run on one in-order pipe
// (PTX ISA 9.7.16.6, and mma before cp as every shipped kernel relies on); see tcgen05_access.cc
// for ld, st and wait, tcgen05_alloc.cc for allocation.
#include "tools/emulator/op/tcgen05.h"

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/mbarrier_access.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/scaled_sum.h"

namespace emu::ops {

using glue::Target;
using glue::Where;
using ptx::Instr;
using ptx::Mod;
using ptx::Operand;
using ptx::Step;

Cta* peer(Warp& warp, const Instr& in) {
  if (!in.has(Mod::cta_group_2)) return nullptr;
  Cluster& cluster = warp.cta.cluster;
  const uint32_t rank = warp.cta.rank ^ 1;
  if (rank >= cluster.ctas.size())
    throw Fault(FaultKind::illegal_instruction,
                format("%s by CTA %u of a cluster of %zu: .cta_group::2 needs the CTA of rank %u",
                       in.opcode, warp.cta.rank, cluster.ctas.size(), rank));
  return cluster.ctas[rank].get();
}

CtaGroup cta_group(Warp& warp, const Instr& in) {
  Cta* other = peer(warp, in);
  if (!other) return {&warp.cta};
  glue::require_running(warp.cta, *other, in.opcode);
  return warp.cta.rank % 2 ? CtaGroup{other, &warp.cta} : CtaGroup{&warp.cta, other};
}

uint32_t only_lane(const Instr& in, uint32_t active) {
  if (std::popcount(active) != 1)
    throw Fault(FaultKind::illegal_instruction,
                format("%s is issued by %d lanes at once, that is %d times; elect one", in.opcode,
                       std::popcount(active), std::popcount(active)));
  return uint32_t(std::countr_zero(active));
}

AsyncQueue::Chain pipe(Cta& cta) {
  if (!cta.units.tcgen05) cta.units.tcgen05 = cta.cluster.async.new_chain();
  return cta.units.tcgen05;
}

void issue(Warp& warp, const Instr& in, uint32_t lane, Work work, const CtaGroup& group,
           const AsyncWork::Check& check, std::function<void(const Memories&)> effect) {
  const Memories memories = AsyncWork(warp, work, lane).memories(group, check);
  warp.cta.units.issuers.insert(warp.thread(lane));
  const Cta* from = &warp.cta;
  const char* who = in.opcode;
  auto take_effect = [=, effect = std::move(effect)] {
    for (const Cta* cta : group) glue::require_running(*from, *cta, who);
    effect(memories);
  };
  // Before the MMAs on the pipe, where EMU_CP_OVERTAKES has it so.
  if (work == Work::tensor_copy && settings().cp_overtakes) return take_effect();
  glue::post(warp, pipe(warp.cta), in, std::move(take_effect));
}

namespace {

MmaKind kind_of(const Instr& in) {
  if (in.has(Mod::kind_f16)) return MmaKind::f16;
  if (in.has(Mod::kind_tf32)) return MmaKind::tf32;
  if (in.has(Mod::kind_f8f6f4)) return MmaKind::f8f6f4;
  if (in.has(Mod::kind_i8)) return MmaKind::i8;
  if (in.has(Mod::kind_mxf8f6f4)) return MmaKind::mxf8f6f4;
  return in.has(Mod::kind_mxf4) ? MmaKind::mxf4 : MmaKind::mxf4nvf4;
}

// The operands after the instruction descriptor: two scale addresses or a lane mask, the
// predicate, the scale of D or the mask of columns of B.
void read_tail(Warp& warp, const Instr& in, uint32_t lane, MmaCommand& c) {
  size_t at = 4;
  if (is_block_scaled(c.kind)) {
    c.sfa = uint32_t(warp.address(in.ops[at++], lane));
    c.sfb = uint32_t(warp.address(in.ops[at++], lane));
  } else if (in.ops[at].kind == Operand::Kind::vector) {
    size_t i = 0;
    for (const Operand& mask : in.ops[at++].elements)
      c.disabled[i++] = uint32_t(warp.get(mask, lane));
  }
  c.accumulate = warp.pred(in.ops[at++], lane);
  if (at == in.ops.size()) return;
  if (c.weights)
    c.zero_columns = warp.get(in.ops[at], lane);
  else
    c.scale_d = uint32_t(in.ops[at].imm);
}

// N of an instruction descriptor, in units of 8, is in its bits 17 to 22.
uint32_t with_n_of_step(uint32_t instruction) {
  constexpr uint32_t at = 17, field = 63u << at;
  const uint32_t n = (instruction & field) >> at << 3, step = settings().n_step;
  if (step <= 8 || n < step) return instruction;
  return (instruction & ~field) | n / step * step / 8 << at;
}

template <bool Weights>
Step mma(Warp& warp, const Instr& in, uint32_t active) {
  const uint32_t lane = only_lane(in, active);
  MmaCommand c;
  c.kind = kind_of(in);
  c.weights = Weights;
  c.block = in.has(Mod::block16) || in.has(Mod::scale_vec_4X) ? 16 : 32;
  c.d = uint32_t(warp.address(in.ops[0], lane));
  c.a_in_tensor = in.ops[1].kind == Operand::Kind::address;
  c.a = c.a_in_tensor ? warp.address(in.ops[1], lane) : warp.get(in.ops[1], lane);
  c.b = warp.get(in.ops[2], lane);
  c.instruction = with_n_of_step(uint32_t(warp.get(in.ops[3], lane)));
  c.zero_raises = settings().zero_group_raises;
  c.scale_bands = settings().scale_bands;
  c.line = in.pos.line;
  c.scaled_sum = scaled_sum();
  read_tail(warp, in, lane, c);
  const CtaGroup group = cta_group(warp, in);
  const auto check = [&](const Memories& ctas) {
    std::vector<Footprint> footprints = check_mma(c, ctas);
    ++warp.cta.counters.mmas;
    for (const Footprint& f : footprints) warp.cta.counters.macs += f.macs;
    return footprints;
  };
  issue(warp, in, lane, Work::mma, group, check, [c](const Memories& ctas) { run_mma(c, ctas); });
  return Step::next;
}

CopyShape copy_shape(const Instr& in) {
  if (in.has(Mod::shape_128x256b)) return CopyShape::r128x256b;
  if (in.has(Mod::shape_128x128b)) return CopyShape::r128x128b;
  if (in.has(Mod::shape_4x256b)) return CopyShape::r4x256b;
  if (in.has(Mod::warpx2_02_13)) return CopyShape::r64x128b_02_13;
  if (in.has(Mod::warpx2_01_23)) return CopyShape::r64x128b_01_23;
  return CopyShape::r32x128b;
}

Step cp(Warp& warp, const Instr& in, uint32_t active) {
  const uint32_t lane = only_lane(in, active);
  const CopyShape shape = copy_shape(in);
  const uint32_t to = uint32_t(warp.address(in.ops[0], lane));
  const uint64_t from = warp.get(in.ops[1], lane);
  const CopyFormat format = in.has(Mod::b6x16_p32) ? CopyFormat::b6x16_p32 : CopyFormat::bytes;
  ++warp.cta.counters.scale_copies;
  const CtaGroup group = cta_group(warp, in);
  issue(
      warp, in, lane, Work::tensor_copy, group,
      [=](const Memories& ctas) { return check_tensor_copy(shape, to, from, ctas); },
      [=](const Memories& ctas) { run_tensor_copy(shape, to, from, ctas, format); });
  return Step::next;
}

// The barrier that a commit names. SASS takes the low 32 bits of the operand for a shared address,
// so one in 64 bits that is no generic address works, though the manual wants one.
Target commit_target(Warp& warp, const Instr& in, uint32_t lane) {
  if (in.has(Mod::shared_cluster))
    return glue::target(warp, in.ops[0], lane, Where::cluster, in.opcode);
  const uint64_t operand = warp.address(in.ops[0], lane);
  if (operand >> 32 || in.ops[0].base_is_symbol)
    return glue::target(warp, in.ops[0], lane, Where::generic_cluster, in.opcode);
  Target t;
  t.cta = &warp.cta.cluster.cta_of(uint32_t(operand), &t.address, in.opcode);
  report::formal(report::Rule::shared_commit,
                 format("%s without .shared::cluster takes a generic address, and 0x%x is one of "
                        "shared memory, which the code that ptxas makes takes as well",
                        in.opcode, uint32_t(operand)),
                 warp, in, 1u << lane);
  return t;
}

// The CTAs whose barrier at the operand's offset the commit arrives at.
std::vector<Target> commit_targets(Warp& warp, const Instr& in, uint32_t lane) {
  Cluster& cluster = warp.cta.cluster;
  const Target one = commit_target(warp, in, lane);
  if (!in.has(Mod::multicast_cluster)) return {one};
  const uint32_t mask = uint32_t(warp.get(in.ops[1], lane)) & 0xFFFF;
  if (mask == 0 || mask >> cluster.ctas.size())
    throw Fault(
        FaultKind::illegal_instruction,
        format("tcgen05.commit with CTA mask 0x%x in a cluster of %zu: its bits are ranks in "
               "the cluster",
               mask, cluster.ctas.size()));
  std::vector<Target> all;
  glue::each_lane(mask, [&](uint32_t r) { all.push_back({cluster.ctas[r].get(), one.address}); });
  return all;
}

// Arrives when the thread's own earlier mma and cp are done; a thread that issued none waits for
// nothing, whatever its neighbours issued.
Step commit(Warp& warp, const Instr& in, uint32_t active) {
  const uint32_t lane = only_lane(in, active);
  cta_group(warp, in);
  const std::vector<Target> targets = commit_targets(warp, in, lane);
  for (const Target& t : targets) {
    t.cta->mbarriers.state(t.address, in.opcode);
    MbarrierAccess::use(t, 1u << lane);
  }
  Cta* from = &warp.cta;
  ++from->counters.commits;
  const bool issuer = from->units.issuers.count(warp.thread(lane)) != 0;
  const AsyncWork work(warp, Work::commit, lane);
  glue::post(warp, issuer ? pipe(*from) : from->cluster.async.new_chain(), in, [=] {
    for (size_t i = 0; i < targets.size(); ++i) {
      glue::require_running(*from, *targets[i].cta, "tcgen05.commit");
      work.arrive(targets[i], "tcgen05.commit", i + 1 == targets.size());
    }
  });
  return Step::next;
}

Step fence_before(Warp& warp, const Instr&, uint32_t) {
  warp.cta.cluster.observers.tell(event::TensorFenceBefore{});
  return Step::next;
}

Step fence_after(Warp& warp, const Instr&, uint32_t) {
  warp.cta.cluster.observers.tell(event::TensorFenceAfter{});
  return Step::next;
}

}  // namespace

ptx::Exec bind_tcgen05_cp(const Instr& in, std::string& why) {
  if (in.has(Mod::b4x16_p64)) {
    why =
        "tcgen05.cp of .b4x16_p64 is not emulated: which bits of its byte an element gets, the "
        "manual only draws; ldmatrix gives it the lowest, mma.sync takes it from the middle";
    return nullptr;
  }
  return cp;
}
ptx::Exec bind_tcgen05_mma(const Instr& in, std::string& why) {
  if (in.has(Mod::ashift)) {
    why =
        "tcgen05.mma with .ashift is not emulated: the manual leaves open whether down is to the "
        "row after or the row before, and whether all rows of A or 32 at a time move";
    return nullptr;
  }
  return mma<false>;
}
ptx::Exec bind_tcgen05_mma_ws(const Instr&, std::string&) { return mma<true>; }
ptx::Exec bind_tcgen05_commit(const Instr&, std::string&) { return commit; }
// On sm_100a both emit no instruction: they bind the compiler. So a missing one is a formal
// finding.
ptx::Exec bind_tcgen05_fence_before_thread_sync(const Instr&, std::string&) { return fence_before; }
ptx::Exec bind_tcgen05_fence_after_thread_sync(const Instr&, std::string&) { return fence_after; }

}  // namespace emu::ops
