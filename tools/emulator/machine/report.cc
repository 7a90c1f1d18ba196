// SPDX-License-Identifier: MIT
// What a fault says.
#include "tools/emulator/machine/report.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

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

}  // namespace

std::string place(const Cluster& cluster, const ptx::Instr& in) {
  std::string text = format("PTX line %u:%u: ", in.pos.line, in.pos.column);
  if (!cluster.launch.module) return text + in.opcode;
  const std::string cuda = cluster.launch.module->cuda_line(*cluster.launch.function, in);
  return (cuda.empty() ? text : cuda + ", " + text) +
         source_line(cluster.launch.module->source, in.pos.line);
}

namespace {

std::string place(const Cluster& cluster, uint32_t pc) {
  const auto& code = cluster.launch.function->code;
  return pc < code.size() ? report::place(cluster, code[pc]) : "after the last instruction";
}

}  // namespace

std::string elsewhere(const Warp& warp, uint32_t active) {
  std::string text;
  const auto line = [&](uint32_t pc, uint32_t mask) {
    if (!(mask & active))
      text += format("\n  lanes 0x%08x are at ", mask) + place(warp.cta.cluster, pc);
  };
  for (const Divergence::Fragment& f : warp.flow.fragments) line(f.pc, f.mask);
  warp.flow.each_parked(line);
  return text;
}

namespace {

// As it stands in the source, for the names that C++ makes.
std::string plain_name(const std::string& symbol) {
  int status = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string plain = symbol.rfind("_Z", 0) == 0 && name ? name : symbol;
  std::free(name);
  return plain;
}

std::string head(FaultKind kind, const Cluster& cluster) {
  return format("%s in kernel %s", name(kind), plain_name(cluster.launch.function->name).c_str());
}

// ---- threads and objects ----------------------------------------------------------------------

std::string thread(const Warp& warp, uint32_t lane) {
  const Dim3& b = warp.cta.cluster.launch.block;
  const uint32_t t = warp.thread(lane);
  return dim({t % b.x, t / b.x % b.y, t / b.x / b.y});
}

// The one lane to blame, or all that execute the instruction.
std::string threads(const Warp& warp, uint32_t active, int64_t lane) {
  if (lane >= 0 && lane < 32 && (active >> lane & 1)) active = 1u << lane;
  if (!active) return "";
  const uint32_t first = uint32_t(std::countr_zero(active));
  std::string text = ", thread " + thread(warp, first);
  if (std::popcount(active) > 1)
    text += " to " + thread(warp, 31 - uint32_t(std::countl_zero(active)));
  return text + format(", lanes 0x%08x", active);
}

}  // namespace

std::string shared_object(const Cta& cta, uint32_t address) {
  const Launch& launch = cta.cluster.launch;
  const uint32_t end = SharedMemory::window_start + Cluster::shared_bytes(launch);
  const ptx::SharedVariable* dynamic = nullptr;
  for (const ptx::SharedVariable& v : launch.function->shared) {
    if (v.dynamic) dynamic = &v;
    if (!v.dynamic && address - v.address < v.bytes)
      return format("%s + 0x%x (.shared, %u bytes at 0x%x)", v.name.c_str(), address - v.address,
                    v.bytes, v.address);
  }
  if (dynamic && address >= dynamic->address && address < end)
    return format("%s + 0x%x (dynamic shared memory, %u bytes at 0x%x)", dynamic->name.c_str(),
                  address - dynamic->address, end - dynamic->address, dynamic->address);
  if (address >= end)
    return format("0x%x bytes beyond the end of the CTA's shared memory", address - end);
  return "";
}

namespace {

uint32_t address_of(int64_t shared) {
  return uint32_t(shared) & ((1u << SharedMemory::rank_shift) - 1);
}

std::string object(const Cluster& cluster, int64_t shared) {
  if (shared == Fault::none) return "";
  const uint32_t rank = uint32_t(shared) >> SharedMemory::rank_shift;
  const uint32_t address = address_of(shared);
  if (rank >= cluster.ctas.size()) return "";
  const Cta& cta = *cluster.ctas[rank];
  const std::string variable = shared_object(cta, address);
  std::string text =
      format("\n  shared address 0x%x of block %s is ", address, dim(cta.id).c_str()) +
      (variable.empty() ? "no variable" : variable);
  if (cta.mbarriers.live(address & ~7u)) text += "\n  " + cta.mbarriers.describe(address & ~7u);
  return text;
}

std::string where(const Warp& warp, uint32_t active, int64_t lane) {
  const Cta& cta = warp.cta;
  return format(", block %s, cluster %s rank %u, warp %u", dim(cta.id).c_str(),
                dim(cta.cluster.id).c_str(), cta.rank, warp.index) +
         threads(warp, active, lane);
}

Fault told(const Fault& fault, std::string text) {
  Fault all(fault.kind, std::move(text), fault.shared);
  all.lane = fault.lane;
  all.located = true;
  return all;
}

// ---- the wait graph ---------------------------------------------------------------------------

std::string actor(const Cluster& cluster, const Actor& a, const Cta& seen_from) {
  const auto& code = cluster.launch.function->code;
  std::string text = format("warp %u", a.warp);
  if (a.rank != seen_from.rank) text += format(" of the CTA of rank %u", a.rank);
  if (a.pc < code.size())
    text += format(" by %s, PTX line %u", code[a.pc].opcode, code[a.pc].pos.line);
  return text;
}

// Who has arrived at an mbarrier so far is who could again: of them, who is missing now.
std::string arrivers(const Cta& cta, uint32_t address) {
  const MbarrierTable::State& state = cta.mbarriers.state(address, "");
  if (state.arrivers.empty()) return "      nobody has arrived there since mbarrier.init\n";
  std::string text;
  for (const auto& [who, arrivals] : state.arrivers) {
    text += "      arrived so far: " + actor(cta.cluster, who, cta) +
            format(", %llu times", (unsigned long long)arrivals.times);
    if (arrivals.last_phase != state.phase)
      text += format(", missing since phase %llu", (unsigned long long)arrivals.last_phase + 1);
    if (!cta.cluster.ctas[who.rank]->warps[who.warp]->live()) text += "; that warp has ended";
    text += "\n";
  }
  return text;
}

// How many phases of an mbarrier of its CTA a warp knows to be over: by its own waits, or by what
// observers have seen it learn.
uint64_t phases_known(const Warp& warp, uint32_t address) {
  const auto own = warp.phases_seen.find(address);
  uint64_t known = own == warp.phases_seen.end() ? 0 : own->second;
  warp.cta.cluster.observers.each(
      [&](Observer& o) { known = std::max(known, o.phases_known(warp, address)); });
  return known;
}

// Parity is all that tells phases apart. So a wait that came when its phase and the next one were
// over waits for a later one.
std::string late_waits(const Warp& warp) {
  const Cluster& cluster = warp.cta.cluster;
  std::string text;
  for (const Divergence::Fragment& f : warp.flow.fragments) {
    if (f.waits_at == Fault::none || !cluster.launch.function->code[f.pc].has(ptx::Mod::parity))
      continue;
    const uint32_t address = address_of(f.waits_at);
    const uint64_t over = warp.cta.mbarriers.state(address, "").phase;
    const uint64_t known = phases_known(warp, address), meant = known + (known + over) % 2;
    if (meant >= over) continue;
    text += format(
                "  too late: block %s, warp %u lanes 0x%08x waited for phase %llu of mbarrier "
                "0x%x, of which it knows %llu phases to be over, when %llu were, and waits for "
                "the next one of that parity: nothing kept the others from going on before it "
                "had seen its phase, ",
                dim(warp.cta.id).c_str(), warp.index, f.mask, (unsigned long long)meant, address,
                (unsigned long long)known, (unsigned long long)over) +
            place(cluster, f.pc) + "\n";
  }
  return text;
}

std::string describe(const Warp& warp) {
  const Cluster& cluster = warp.cta.cluster;
  std::string text;
  for (const auto& f : warp.flow.fragments) {
    text += format("    warp %u lanes 0x%08x wait for %s, ", warp.index, f.mask,
                   f.waiting ? f.waiting().c_str() : "their turn") +
            place(cluster, f.pc) + "\n";
    if (f.waits_at != Fault::none) {
      const uint32_t rank = uint32_t(f.waits_at) >> SharedMemory::rank_shift;
      text += arrivers(*cluster.ctas[rank], address_of(f.waits_at));
    }
  }
  warp.flow.each_parked([&](uint32_t pc, uint32_t mask) {
    text += format("    warp %u lanes 0x%08x wait for the other lanes, ", warp.index, mask) +
            place(cluster, pc) + "\n";
  });
  return text;
}

std::string describe(const Cta& cta) {
  std::string text = format("  block %s, rank %u:\n", dim(cta.id).c_str(), cta.rank);
  for (const auto& warp : cta.warps) text += describe(*warp);
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
    case FaultKind::failed_assert: return "failed assertion";
  }
  return "fault";
}

std::string rule(FaultKind kind) {
  std::string words = name(kind);
  std::replace(words.begin(), words.end(), ' ', '_');
  return words;
}

bool is_rule(const std::string& name) {
  for (int kind = 0; kind <= int(FaultKind::failed_assert); ++kind)
    if (rule(FaultKind(kind)) == name) return true;
  return false;
}

Fault located(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active) {
  const Cluster& cluster = warp.cta.cluster;
  return told(fault, head(fault.kind, cluster) + where(warp, active, fault.lane) + "\n  " +
                         fault.text + object(cluster, fault.shared) + "\n  " + place(cluster, in));
}

void formal(FaultKind kind, const std::string& text, const Warp& warp, const ptx::Instr& in,
            uint32_t active) {
  Findings* findings = warp.cta.cluster.launch.findings;
  if (!findings || !Findings::wanted(Severity::formal)) return;
  if (findings->again(Severity::formal, in.pos.line)) return;
  const Fault finding(kind, "the manual's rule alone: " + text);
  findings->add(Severity::formal, in.pos.line, rule(kind), located(finding, warp, in, active).text);
}

Fault located_effect(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active) {
  const Cluster& cluster = warp.cta.cluster;
  return told(fault, head(fault.kind, cluster) + " in asynchronous work" +
                         where(warp, active, Fault::none) + "\n  " + fault.text +
                         object(cluster, fault.shared) + "\n  effect of " + place(cluster, in));
}

Fault located(const Fault& fault, const Cluster& cluster, const char* during) {
  return told(fault, head(fault.kind, cluster) +
                         format(", cluster %s, %s\n  ", dim(cluster.id).c_str(), during) +
                         fault.text + object(cluster, fault.shared));
}

void formal(FaultKind kind, const std::string& text, const Cluster& cluster, const char* during,
            uint64_t place) {
  Findings* findings = cluster.launch.findings;
  if (!findings || !Findings::wanted(Severity::formal)) return;
  const uint64_t key = 1ull << 63 | place;
  if (findings->again(Severity::formal, key)) return;
  findings->add(Severity::formal, key, rule(kind),
                located(Fault(kind, "the manual's rule alone: " + text), cluster, during).text);
}

Fault deadlock(const Cluster& cluster) {
  std::string text = head(FaultKind::deadlock, cluster) +
                     format(", cluster %s: no warp can go on\n", dim(cluster.id).c_str());
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps) text += late_waits(*warp);
  for (const auto& cta : cluster.ctas)
    if (!cta->ended()) text += describe(*cta);
  text += cluster.barrier.describe();
  std::string pending = cluster.async.pending();
  return Fault(FaultKind::deadlock,
               text + "  " + (pending.empty() ? "no asynchronous work is pending" : pending));
}

}  // namespace emu::report
