// SPDX-License-Identifier: MIT
// tcgen05: allocation, cp, mma, commit, fences. cp, mma and commit of a CTA run on one in-order
// pipe (PTX ISA 9.7.16.6, and mma before cp as every shipped kernel relies on); see
// op_tcgen05_access.cc for ld, st and wait.
#include "../settings.h"
#include "../unit/tensor_core.h"
#include "binders.h"
#include "unit_glue.h"

namespace emu::ops {
namespace {

using glue::Target;
using glue::Where;
using ptx::Instr;
using ptx::Mod;
using ptx::Operand;
using ptx::Step;

bool two_ctas(const Instr& in, std::string& why) {
  if (!in.has(Mod::cta_group_2)) return false;
  why = "tcgen05 with .cta_group::2 is not emulated, only .cta_group::1";
  return true;
}

// ---- allocation: warp collective --------------------------------------------------------------

Step alloc(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_aligned(active, in.opcode);
  const uint32_t lane = uint32_t(std::countr_zero(active));
  const uint32_t columns = uint32_t(warp.uniform(in.ops[1], active, in.opcode));
  warp.uniform(in.ops[0], active, in.opcode);
  const Where where = in.has(Mod::shared_cta) ? Where::own : Where::generic_own;
  const Target to = glue::target(warp, in.ops[0], lane, where, in.opcode);
  const std::optional<uint32_t> address = warp.cta.tensor_memory.allocate(columns);
  if (!address) {
    warp.waiting =
        format("%u columns of tensor memory; ", columns) + warp.cta.tensor_memory.describe();
    return Step::blocked;
  }
  to.cta->shared.write(to.address, &*address, 4, 4, in.opcode);
  return Step::next;
}

Step dealloc(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_aligned(active, in.opcode);
  const uint32_t address = uint32_t(warp.uniform(in.ops[0], active, in.opcode));
  const uint32_t columns = uint32_t(warp.uniform(in.ops[1], active, in.opcode));
  warp.cta.tensor_memory.deallocate(address, columns);
  warp.cta.units.in_flight.check_columns_write(address, columns, false, in.opcode);
  ++warp.cta.cluster.progress;
  return Step::next;
}

Step relinquish(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_aligned(active, in.opcode);
  warp.cta.tensor_memory.relinquish();
  return Step::next;
}

// ---- the pipe: one thread ---------------------------------------------------------------------

// PTX lets every thread issue; a converged warp then issues the same work up to 32 times, which no
// program means.
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

// Puts an mma or cp on the pipe, with its footprint in flight until a commit of it was waited for.
void issue(Warp& warp, const Instr& in, uint32_t lane, const Footprint& f,
           std::function<void(Cta&)> effect) {
  Cta* cta = &warp.cta;
  InFlight& flight = cta->units.in_flight;
  flight.check_chunks_read(f.chunks, in.opcode);
  cta->units.proxy.check_chunks_read(f.chunks, in.opcode);
  flight.check_columns_write(f.column, f.columns, true, in.opcode);
  flight.read_chunks(f.chunks, InFlight::begin);
  flight.write_columns(f.column, f.columns, InFlight::begin);
  cta->units.issuers.insert(warp.thread(lane));
  cta->units.issued.push_back({warp.thread(lane), ++cta->units.last_issued, [cta, f] {
                                 cta->units.in_flight.read_chunks(f.chunks, InFlight::end);
                                 cta->units.in_flight.write_columns(f.column, f.columns,
                                                                    InFlight::end);
                               }});
  glue::post(warp, pipe(*cta), in, [cta, effect = std::move(effect)] { effect(*cta); });
}

// A commit of `thread` was waited for, and so was what the thread had issued before, up to `last`.
void release(Cta& cta, uint32_t thread, uint64_t last) {
  std::deque<PipeWork>& issued = cta.units.issued;
  for (auto work = issued.begin(); work != issued.end() && work->number <= last;) {
    if (work->thread != thread) {
      ++work;
    } else {
      work->release();
      work = issued.erase(work);
    }
  }
}

Step mma(Warp& warp, const Instr& in, uint32_t active) {
  const uint32_t lane = only_lane(in, active);
  MmaCommand c;
  c.kind = in.has(Mod::kind_mxf4) ? MmaKind::mxf4 : MmaKind::mxf4nvf4;
  c.block = in.has(Mod::block16) || in.has(Mod::scale_vec_4X) ? 16 : 32;
  c.d = uint32_t(warp.address(in.ops[0], lane));
  c.a = warp.get(in.ops[1], lane);
  c.b = warp.get(in.ops[2], lane);
  c.instruction = uint32_t(warp.get(in.ops[3], lane));
  c.sfa = uint32_t(warp.address(in.ops[4], lane));
  c.sfb = uint32_t(warp.address(in.ops[5], lane));
  c.accumulate = warp.pred(in.ops[6], lane);
  const Footprint f = check_mma(c, warp.cta.tensor_memory);
  ++warp.cta.counters.mmas;
  warp.cta.counters.macs += f.macs;
  issue(warp, in, lane, f,
        [c](Cta& cta) { run_mma(c, cta.shared, cta.tensor_memory, settings().zero_group_raises); });
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
  ++warp.cta.counters.scale_copies;
  issue(warp, in, lane, check_tensor_copy(shape, to, from, warp.cta.tensor_memory),
        [=](Cta& cta) { run_tensor_copy(shape, to, from, cta.shared, cta.tensor_memory); });
  return Step::next;
}

// The CTAs whose barrier at the operand's offset the commit arrives at.
std::vector<Target> commit_targets(Warp& warp, const Instr& in, uint32_t lane) {
  Cluster& cluster = warp.cta.cluster;
  const Where where = in.has(Mod::shared_cluster) ? Where::cluster : Where::generic_cluster;
  const Target one = glue::target(warp, in.ops[0], lane, where, in.opcode);
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
  const std::vector<Target> targets = commit_targets(warp, in, lane);
  for (const Target& t : targets) t.cta->mbarriers.state(t.address, in.opcode);
  Cta* from = &warp.cta;
  ++from->counters.commits;
  const bool issuer = from->units.issuers.count(warp.thread(lane)) != 0;
  glue::post(warp, issuer ? pipe(*from) : from->cluster.async.new_chain(), in,
             [from, targets, thread = warp.thread(lane), last = from->units.last_issued] {
               for (const Target& t : targets) {
                 glue::require_running(*from, *t.cta, "tcgen05.commit");
                 const uint64_t phase = t.cta->mbarriers.state(t.address, "tcgen05.commit").phase;
                 t.cta->units.unobserved.add(t.address, phase,
                                             [=] { release(*from, thread, last); });
                 t.cta->mbarriers.arrive(t.address);
               }
             });
  return Step::next;
}

Step fence(Warp&, const Instr&, uint32_t) { return Step::next; }

}  // namespace

ptx::Exec bind_tcgen05_alloc(const Instr& in, std::string& why) {
  return two_ctas(in, why) ? nullptr : alloc;
}
ptx::Exec bind_tcgen05_dealloc(const Instr& in, std::string& why) {
  return two_ctas(in, why) ? nullptr : dealloc;
}
ptx::Exec bind_tcgen05_relinquish_alloc_permit(const Instr& in, std::string& why) {
  return two_ctas(in, why) ? nullptr : relinquish;
}
ptx::Exec bind_tcgen05_cp(const Instr& in, std::string& why) {
  if (in.has(Mod::b8x16)) {
    why = "tcgen05.cp with decompression (.b8x16) is not emulated";
    return nullptr;
  }
  return two_ctas(in, why) ? nullptr : cp;
}
ptx::Exec bind_tcgen05_mma(const Instr& in, std::string& why) {
  if (in.ops[1].kind == Operand::Kind::address) {
    why = "tcgen05.mma with operand A in tensor memory is not emulated";
    return nullptr;
  }
  return two_ctas(in, why) ? nullptr : mma;
}
ptx::Exec bind_tcgen05_commit(const Instr& in, std::string& why) {
  return two_ctas(in, why) ? nullptr : commit;
}
// On sm_100a both emit no instruction: they bind the compiler, and our order is stricter than any.
ptx::Exec bind_tcgen05_fence_before_thread_sync(const Instr&, std::string&) { return fence; }
ptx::Exec bind_tcgen05_fence_after_thread_sync(const Instr&, std::string&) { return fence; }

}  // namespace emu::ops
