// SPDX-License-Identifier: MIT
// What a fault says.
#include "tools/emulator/machine/report.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <mutex>

namespace emu::report {

namespace {

// The statement at a place in the text. It may name 128 registers.
std::string statement(const std::string& source, const SourcePos& pos, size_t longest) {
  size_t begin = 0;
  for (uint32_t i = 1; i < pos.line && begin != std::string::npos; ++i) {
    begin = source.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (pos.line == 0 || begin == std::string::npos) return "";
  std::string text = source.substr(begin, source.find('\n', begin) - begin);
  if (pos.column && pos.column <= text.size()) {  // others may stand in the line
    const size_t end = text.find(';', pos.column - 1);
    if (end != std::string::npos) text.resize(end + 1);
    if (pos.column > 1) text.erase(0, text.find_last_of(";{}", pos.column - 2) + 1);
  }
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  text.erase(0, first);
  if (text.size() > longest) text.replace(longest, std::string::npos, " ..");
  return text;
}

std::string dim(const Dim3& d) { return format("(%u,%u,%u)", d.x, d.y, d.z); }

}  // namespace

namespace {

// Formal findings are many and of right programs, so they are short unless one ends the launch.
bool is_brief(Severity severity) {
  return severity == Severity::formal && settings().formal != Reaction::stop;
}

}  // namespace

std::string place(const Cluster& cluster, const ptx::Instr& in, Severity severity) {
  const bool brief = is_brief(severity);
  std::string text = format("PTX line %u:%u: ", in.pos.line, in.pos.column);
  if (!cluster.launch.module) return text + in.opcode;
  const std::string cuda = cluster.launch.module->cuda_line(*cluster.launch.function, in);
  return (cuda.empty() ? text : cuda + ", " + text) +
         statement(cluster.launch.module->source, in.pos, brief ? 28 : 80);
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

// ---- names ------------------------------------------------------------------------------------

// The name in the source; empty: the symbol is none that C++ makes, or too long for the demangler.
std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string plain = symbol.rfind("_Z", 0) == 0 && name ? name : "";
  std::free(name);
  return plain;
}

// cutlass::device_kernel of _ZN7cutlass13device_kernelI...: what comes before the arguments.
std::string path_of(const std::string& symbol) {
  std::string path;
  size_t at = symbol.rfind("_ZN", 0) == 0 ? 3 : 2;
  while (at < symbol.size() && symbol[at] >= '1' && symbol[at] <= '9') {
    const size_t bytes = size_t(std::atoi(symbol.c_str() + at));
    at = symbol.find_first_not_of("0123456789", at);
    if (at == std::string::npos || bytes > symbol.size() - at) break;
    const std::string name = symbol.substr(at, bytes);
    const bool unnamed = name.find("_GLOBAL__N_") != std::string::npos;
    path += (path.empty() ? "" : "::") + (unnamed ? "(anonymous namespace)" : name);
    at += bytes;
  }
  return path;
}

// The number of a new kernel, from 1, among the process's kernels that have this path.
size_t number_of(const std::string& path) {
  static auto& all = *new std::map<std::string, size_t>;
  return ++all[path];
}

}  // namespace

namespace {

std::string shortened(const std::string& symbol) {
  constexpr size_t longest = 60;
  const std::string plain = demangled(symbol), &whole = plain.empty() ? symbol : plain;
  if (whole.size() <= longest) return whole;
  const std::string path = path_of(symbol);
  const std::string cut = path.empty() ? symbol.substr(0, longest) + ".." : path + "<...>";
  return cut + format(" #%zu", number_of(cut));
}

}  // namespace

std::string kernel_name(const std::string& symbol) {
  static std::mutex lock;
  static auto& known = *new std::map<std::string, std::string>;
  std::lock_guard guard(lock);
  const auto [name, fresh] = known.emplace(symbol, "");
  if (fresh) name->second = shortened(symbol);
  return name->second;
}

namespace {

std::string head(FaultKind kind, const Cluster& cluster) {
  return std::string(name(kind)) + " in kernel " + kernel_name(cluster.launch.function->name);
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

// ---- who has arrived --------------------------------------------------------------------------

std::string actor(const Cluster& cluster, const Actor& a, const Cta& seen_from) {
  const auto& code = cluster.launch.function->code;
  std::string text = format("warp %u", a.warp);
  if (a.rank != seen_from.rank) text += format(" of the CTA of rank %u", a.rank);
  if (a.pc < code.size())
    text += format(" by %s, PTX line %u", code[a.pc].opcode, code[a.pc].pos.line);
  return text;
}

// The warps that have arrived at an mbarrier so far, since they are those that could arrive again,
// and which of them are missing now.
std::string arrivers(const Cta& cta, uint32_t address) {
  const MbarrierTable::State& state = cta.mbarriers.state(address, "");
  if (state.arrivers.empty()) return "      nobody has arrived there since mbarrier.init\n";
  std::string text;
  size_t told = 0;
  for (const auto& [who, arrivals] : state.arrivers) {
    constexpr size_t most = 8;
    if (told++ == most)
      return text + format("      and %zu other instructions\n", state.arrivers.size() - most);
    text += "      arrived so far: " + actor(cta.cluster, who, cta) +
            format(", %llu times", (unsigned long long)arrivals.times);
    if (arrivals.last_phase != state.phase)
      text += format(", missing since phase %llu", (unsigned long long)arrivals.last_phase + 1);
    if (!cta.cluster.ctas[who.rank]->warps[who.warp]->live()) text += "; that warp has ended";
    text += "\n";
  }
  return text;
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
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
  if (cta.mbarriers.live(address & ~7u))
    text += "\n  " + cta.mbarriers.describe(address & ~7u) + "\n" + arrivers(cta, address & ~7u);
  return trimmed(text);
}

std::string where(const Warp& warp, uint32_t active, int64_t lane, Severity severity) {
  const Cta& cta = warp.cta;
  std::string text = ", block " + dim(cta.id);
  if (cta.cluster.ctas.size() > 1)
    text += format(", cluster %s rank %u", dim(cta.cluster.id).c_str(), cta.rank);
  text += format(", warp %u", warp.index);
  return is_brief(severity) ? text : text + threads(warp, active, lane);
}

Fault told(const Fault& fault, std::string text) {
  Fault all(fault.kind, std::move(text), fault.shared);
  all.lane = fault.lane;
  all.located = true;
  return all;
}

// ---- the wait graph ---------------------------------------------------------------------------

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

namespace {

struct Row {
  const char* name;
  FaultKind kind;
};

// In the order of the enumerators of Rule.
constexpr Row rows[] = {
#define EMU_RULE(name, kind, meaning) {#name, FaultKind::kind},
#include "tools/emulator/machine/rules.def"
#undef EMU_RULE
};

}  // namespace

bool is_rule(const std::string& name) {
  for (int kind = 0; kind <= int(FaultKind::failed_assert); ++kind)
    if (rule(FaultKind(kind)) == name) return true;
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const Row& r) { return name == r.name; });
}

namespace {

bool arrives_at(const Warp& warp, const MbarrierTable::State& barrier) {
  return std::any_of(barrier.arrivers.begin(), barrier.arrivers.end(), [&](const auto& a) {
    return a.first.rank == warp.cta.rank && a.first.warp == warp.index;
  });
}

// The mbarriers that `waits` has waited for and at which `arrives` has arrived. If it has waited
// for only one, this is named in any case: the other warp may arrive there later.
std::string waited_for(const Warp& waits, const Warp& arrives) {
  std::string text;
  const bool alone = waits.phases_seen.size() == 1;
  for (const auto& [address, phases] : waits.phases_seen) {
    if (!waits.cta.mbarriers.live(address)) continue;
    const MbarrierTable::State& barrier = waits.cta.mbarriers.state(address, "");
    if (!alone && !arrives_at(arrives, barrier)) continue;
    text += format("\n  warp %u has waited for mbarrier 0x%x, whose count is %u:\n", waits.index,
                   address, barrier.count) +
            trimmed(arrivers(waits.cta, address));
  }
  return text;
}

}  // namespace

std::string mbarriers_between(const Warp& one, const Warp& other) {
  return waited_for(one, other) + waited_for(other, one);
}

Fault located(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active,
              Severity severity) {
  const Cluster& cluster = warp.cta.cluster;
  return told(fault, head(fault.kind, cluster) + where(warp, active, fault.lane, severity) +
                         "\n  " + fault.text + object(cluster, fault.shared) + "\n  " +
                         place(cluster, in, severity));
}

namespace {

// The tool that repairs a breach of the rule (ptxas), if the module's compiler relies on the
// repair; otherwise nullptr.
const char* left_to(Rule rule, const ptx::Module* module) {
  return module && rule == Rule::early_register ? module->left_to_ptxas() : nullptr;
}

// Calls `located` only for the first finding with its key.
template <class Located>
void add(Rule rule, const Findings::Place& place, const Launch& launch, Located located) {
  if (!launch.findings || !Findings::wanted(Severity::formal)) return;
  if (launch.findings->again(Severity::formal, place.key)) return;
  const Row& row = rows[size_t(rule)];
  launch.findings->add(Severity::formal, place, row.name, located(row.kind).text,
                       left_to(rule, launch.module));
}

// No key of the ordering checks has these bits.
constexpr uint64_t of_instruction = 1ull << 62, of_end = 1ull << 63;

}  // namespace

void formal(Rule rule, const std::string& text, const Warp& warp, const ptx::Instr& in,
            uint32_t active) {
  const uint32_t line = in.pos.line;
  add(rule, {of_instruction | uint64_t(rule) << 32 | line, line}, warp.cta.cluster.launch,
      [&](FaultKind kind) {
        return located(Fault(kind, text), warp, in, active, Severity::formal);
      });
}

void formal_effect(Rule rule, const std::string& text, const Cluster& cluster) {
  const Actor& by = cluster.actor;
  const Warp& warp = *cluster.ctas[by.rank]->warps[by.warp];
  const ptx::Instr& in = cluster.launch.function->code[by.pc];
  const uint32_t line = in.pos.line;
  add(rule, {of_instruction | uint64_t(rule) << 32 | line, line}, cluster.launch,
      [&](FaultKind kind) {
        return located_effect(Fault(kind, text), warp, in, 0, Severity::formal);
      });
}

Fault located_effect(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active,
                     Severity severity) {
  const Cluster& cluster = warp.cta.cluster;
  return told(fault, head(fault.kind, cluster) + " in asynchronous work" +
                         where(warp, active, Fault::none, severity) + "\n  " + fault.text +
                         object(cluster, fault.shared) + "\n  effect of " +
                         place(cluster, in, severity));
}

Fault located(const Fault& fault, const Cluster& cluster, const char* during) {
  return told(fault, head(fault.kind, cluster) +
                         format(", cluster %s, %s\n  ", dim(cluster.id).c_str(), during) +
                         fault.text + object(cluster, fault.shared));
}

void formal(Rule rule, const std::string& text, const Cluster& cluster, const char* during,
            uint32_t line, uint32_t rank) {
  const uint64_t key = of_end | uint64_t(line) << 24 | uint64_t(rule) << 8 | rank;
  add(rule, {key, line}, cluster.launch,
      [&](FaultKind kind) { return located(Fault(kind, text), cluster, during); });
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
