// SPDX-License-Identifier: MIT
// What a fault says.
#include "report.h"

namespace emu::report {

namespace {

std::string source_line(const std::string& source, uint32_t line) {
  size_t begin = 0;
  for (uint32_t i = 1; i < line && begin != std::string::npos; ++i) {
    begin = source.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (line == 0 || begin == std::string::npos) return "";
  std::string text = source.substr(begin, source.find('\n', begin) - begin);
  size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first);
}

std::string dim(const Dim3& d) { return format("(%u,%u,%u)", d.x, d.y, d.z); }

std::string place(const Cluster& cluster, const ptx::Instr& in) {
  std::string text = format("PTX line %u:%u: ", in.pos.line, in.pos.column);
  if (!cluster.launch.module) return text + in.opcode;
  const std::string cuda = cluster.launch.module->cuda_line(in);
  return (cuda.empty() ? text : cuda + ", " + text) +
         source_line(cluster.launch.module->source, in.pos.line);
}

std::string place(const Cluster& cluster, uint32_t pc) {
  const auto& code = cluster.launch.function->code;
  return pc < code.size() ? place(cluster, code[pc]) : "behind the last instruction";
}

std::string head(FaultKind kind, const Cluster& cluster) {
  return format("%s in kernel %s", name(kind), cluster.launch.function->name.c_str());
}

std::string describe(const Warp& warp) {
  const Cluster& cluster = warp.cta.cluster;
  std::string text;
  for (const auto& f : warp.flow.fragments)
    text += format("  warp %u lanes 0x%08x wait for %s, ", warp.index, f.mask,
                   f.waiting.empty() ? "their turn" : f.waiting.c_str()) +
            place(cluster, f.pc) + "\n";
  warp.flow.each_parked([&](uint32_t pc, uint32_t mask) {
    text += format("  warp %u lanes 0x%08x wait for the other lanes, ", warp.index, mask) +
            place(cluster, pc) + "\n";
  });
  return text;
}

std::string describe(const Cta& cta) {
  std::string text = format("block %s, rank %u:\n", dim(cta.id).c_str(), cta.rank);
  for (const auto& warp : cta.warps) text += describe(*warp);
  std::string barriers = cta.mbarriers.describe();
  if (!barriers.empty()) text += barriers + "\n";
  return text + cta.barriers.describe();
}

}  // namespace

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::illegal_address: return "illegal address";
    case FaultKind::misaligned_address: return "misaligned address";
    case FaultKind::illegal_instruction: return "illegal instruction";
    case FaultKind::uninitialised: return "uninitialised value";
    case FaultKind::barrier_misuse: return "barrier misuse";
    case FaultKind::tensor_memory: return "tensor memory misuse";
    case FaultKind::ordering: return "missing order";
    case FaultKind::deadlock: return "deadlock";
    case FaultKind::watchdog: return "instruction budget spent";
    case FaultKind::assertion: return "trap";
  }
  return "fault";
}

Fault located(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active) {
  const Cta& cta = warp.cta;
  return Fault(fault.kind, head(fault.kind, cta.cluster) +
                               format(", block %s, cluster %s rank %u, warp %u, lanes 0x%08x\n  ",
                                      dim(cta.id).c_str(), dim(cta.cluster.id).c_str(), cta.rank,
                                      warp.index, active) +
                               fault.text + "\n  " + place(cta.cluster, in));
}

Fault located(const Fault& fault, const Cluster& cluster, const char* during) {
  return Fault(fault.kind, head(fault.kind, cluster) +
                               format(", cluster %s, %s\n  ", dim(cluster.id).c_str(), during) +
                               fault.text);
}

Fault deadlock(const Cluster& cluster) {
  std::string text = head(FaultKind::deadlock, cluster) +
                     format(", cluster %s: no warp can go on\n", dim(cluster.id).c_str());
  for (const auto& cta : cluster.ctas) text += describe(*cta);
  text += cluster.barrier.describe();
  std::string pending = cluster.async.pending();
  return Fault(FaultKind::deadlock,
               text + (pending.empty() ? "no asynchronous work is pending" : pending));
}

}  // namespace emu::report
