// SPDX-License-Identifier: MIT
// Named barriers and the cluster barrier.
#include "tools/emulator/machine/named_barrier.h"

#include <bit>

#include "tools/emulator/machine/machine.h"

namespace emu {

NamedBarriers::NamedBarriers(Cta& cta) : cta_(cta) {}

uint64_t NamedBarriers::arrive(uint32_t id, uint32_t threads, Warp& warp, uint32_t lanes,
                               const char* who) {
  if (id >= count)
    throw Fault(FaultKind::barrier_misuse, format("%s names barrier %u; there are 16", who, id));
  uint32_t all = uint32_t(cta_.warps.size()) * 32;
  if (threads % 32 || threads > all)
    throw Fault(FaultKind::barrier_misuse,
                format("%s at barrier %u for %u threads: the number must be a multiple of 32 and "
                       "at most %u, the threads of this CTA",
                       who, id, threads, all));
  const bool counted = threads == all;
  if (counted) threads = whole_cta;
  Barrier& b = barriers_[id];
  if (!b.open) {
    b.open = true;
    b.counted = false;
    b.threads = threads;
    b.arrived.assign(cta_.warps.size(), 0);
  }
  if (b.threads != threads)
    throw Fault(FaultKind::barrier_misuse,
                format("%s at barrier %u for %u threads, where others wait for %u", who, id,
                       threads ? threads : all, b.threads ? b.threads : all));
  if (b.arrived[warp.index] & lanes)
    throw Fault(FaultKind::barrier_misuse,
                format("%s: lanes 0x%08x arrive at barrier %u for the second time in one phase",
                       who, b.arrived[warp.index] & lanes, id));
  b.arrived[warp.index] |= lanes;
  b.counted |= counted;
  uint64_t ticket = b.generation + 1;
  finish_if_complete(b);
  return ticket;
}

void NamedBarriers::contribute(uint32_t id, uint32_t lanes, uint32_t true_lanes) {
  barriers_[id].sum_lanes += uint32_t(std::popcount(lanes));
  barriers_[id].sum_true += uint32_t(std::popcount(true_lanes));
}

uint32_t NamedBarriers::result(uint32_t id, Reduction r) const {
  const Barrier& b = barriers_[id];
  if (r == Reduction::all) return b.last_true == b.last_lanes;
  return r == Reduction::any ? b.last_true != 0 : b.last_true;
}

// A warp counts as 32 threads once all its live lanes have come: hardware counts warps (PTX ISA,
// "the barrier instruction operates on a per-warp basis"). A warp that has ended is not waited for
// (9.7.12.7). At a barrier with a count of threads it does not count as arrived, so other warps
// have to make up the count.
bool NamedBarriers::complete(const Barrier& b) const {
  uint32_t counted = 0;
  for (size_t w = 0; w < b.arrived.size(); ++w) {
    bool all_here = !(cta_.warps[w]->live() & ~b.arrived[w]);
    if (b.threads == whole_cta && (!all_here || (b.counted && !b.arrived[w]))) return false;
    if (b.arrived[w]) counted += all_here ? 32 : uint32_t(std::popcount(b.arrived[w]));
  }
  return b.threads == whole_cta || counted >= b.threads;
}

void NamedBarriers::finish_if_complete(Barrier& b) {
  if (!b.open || !complete(b)) return;
  b.open = false;
  ++b.generation;
  b.last_lanes = b.sum_lanes;
  b.last_true = b.sum_true;
  b.sum_lanes = b.sum_true = 0;
  ++cta_.cluster.progress;
}

void NamedBarriers::threads_exited() {
  for (Barrier& b : barriers_) finish_if_complete(b);
}

std::string NamedBarriers::describe() const {
  std::string text;
  for (uint32_t id = 0; id < count; ++id) {
    const Barrier& b = barriers_[id];
    if (!b.open) continue;
    text += format("  barrier %u (%s):", id,
                   b.threads == whole_cta ? "whole CTA" : format("%u threads", b.threads).c_str());
    for (size_t w = 0; w < b.arrived.size(); ++w)
      if (b.arrived[w]) text += format(" warp %zu lanes 0x%08x", w, b.arrived[w]);
    text += " arrived;";
    for (const auto& warp : cta_.warps)
      if (const uint32_t missing = warp->live() & ~b.arrived[warp->index])
        text += format(" warp %u lanes 0x%08x", warp->index, missing);
      else if (!warp->live() && !b.arrived[warp->index])
        text += format(" warp %u, which has ended,", warp->index);
    text += " have not\n";
  }
  return text;
}

void ClusterBarrier::arrive(Warp& warp, uint32_t lanes) {
  if (warp.cluster_arrived & lanes)
    throw Fault(FaultKind::barrier_misuse,
                format("barrier.cluster.arrive by lanes 0x%08x, which arrived before and have not "
                       "waited since",
                       warp.cluster_arrived & lanes));
  warp.cluster_arrived |= lanes;
  for (uint32_t l = lanes; l; l &= l - 1)
    warp.cluster_ticket[std::countr_zero(l)] = generation_ + 1;
  finish_if_complete();
}

bool ClusterBarrier::wait(Warp& warp, uint32_t lanes) {
  if (lanes & ~warp.cluster_arrived)
    throw Fault(FaultKind::barrier_misuse,
                format("barrier.cluster.wait by lanes 0x%08x, which have not arrived",
                       lanes & ~warp.cluster_arrived));
  for (uint32_t l = lanes; l; l &= l - 1)
    if (warp.cluster_ticket[std::countr_zero(l)] > generation_) return false;
  warp.cluster_arrived &= ~lanes;
  return true;
}

// A lane whose arrival belonged to an earlier generation, and which has not waited yet, has not
// arrived at this one.
void ClusterBarrier::finish_if_complete() {
  bool anybody = false;
  for (auto& cta : cluster_.ctas)
    for (auto& warp : cta->warps)
      for (uint32_t l = warp->live(); l; l &= l - 1) {
        int lane = std::countr_zero(l);
        if (!(warp->cluster_arrived >> lane & 1) || warp->cluster_ticket[lane] <= generation_)
          return;
        anybody = true;
      }
  if (!anybody) return;
  ++generation_;
  ++cluster_.progress;
}

// Empty if no thread has arrived.
std::string ClusterBarrier::describe() const {
  std::string text;
  bool anybody = false;
  for (auto& cta : cluster_.ctas)
    for (auto& warp : cta->warps) {
      uint32_t here = 0;
      for (uint32_t l = warp->cluster_arrived & warp->live(); l; l &= l - 1)
        if (warp->cluster_ticket[std::countr_zero(l)] > generation_)
          here |= 1u << std::countr_zero(l);
      anybody = anybody || here;
      if (uint32_t missing = warp->live() & ~here)
        text += format(" CTA %u warp %u lanes 0x%08x;", cta->rank, warp->index, missing);
    }
  return anybody ? "  barrier.cluster has not been reached by" + text + "\n" : "";
}

}  // namespace emu
