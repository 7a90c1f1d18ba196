// SPDX-License-Identifier: MIT
// See visits.h.
#include "tools/emulator/order/visits.h"

#include <algorithm>

#include "tools/emulator/machine/report.h"

namespace emu::order {

namespace {

std::string place_of(const Cluster& cluster, uint32_t pc, Severity severity) {
  return "\n  by: " + report::place(cluster, cluster.launch.function->code[pc], severity);
}

}  // namespace

Visits::Visits(const Now& now, const Parties& parties)
    : now_(now), parties_(parties), hosts_(now.cluster.ctas.size()) {}

void Visits::add(const Cta& cta, uint32_t address, uint32_t lanes, const Visit& visit) {
  hosts_[cta.rank].visits[{now_.self(), lanes, now_.pc(), address}] = visit;
}

void Visits::access(const Cta& cta, uint32_t address, uint32_t lanes, bool read) {
  if (&cta == &now_.warp().cta) return;
  const uint32_t line = address & ~127u;  // near enough for a report
  add(cta, line, lanes, {parties_.of(now_.self()).time, read, no_phase});
}

void Visits::arrival(const Cta& cta, uint32_t barrier, uint32_t lanes, uint64_t phase) {
  if (&cta == &now_.warp().cta) return;
  add(cta, barrier, lanes, {parties_.of(now_.self()).time, false, phase});
}

void Visits::arrival(const Cta& cta, uint32_t barrier, const Issued& commit, uint64_t phase) {
  if (commit.warp / now_.warps == cta.rank) return;
  hosts_[cta.rank].commits[barrier] = {commit.warp, commit.pc, phase};
}

void Visits::waited(const Cta& cta, uint32_t barrier, uint64_t phase) {
  if (hosts_.size() == 1) return;
  uint64_t& over = hosts_[cta.rank].phases_over[barrier];
  over = std::max(over, phase);
}

bool Visits::is_over(const Host& host, uint32_t barrier, uint64_t phase) const {
  if (phase == no_phase) return false;
  const auto over = host.phases_over.find(barrier);
  return over != host.phases_over.end() && over->second > phase;
}

// Whether the access of each lane is known to some thread of the CTA. Any thread will do, because
// the CTA ends after all of its threads.
bool Visits::is_known(const Cta& cta, const By& by, uint32_t time, Clock Knowledge::*clock) const {
  uint32_t open = by.lanes;
  const auto take = [&](const Knowledge& k) {
    for_lanes(open, [&](uint32_t lane) {
      if ((k.*clock).reaches(by.warp, 1u << lane, time)) open &= ~(1u << lane);
    });
  };
  for (uint32_t w = 0; w < now_.warps && open; ++w) {
    const Party& p = parties_.of(cta.rank * now_.warps + w);
    take(p.all);
    for_lanes(p.owners, [&](uint32_t lane) { take(*p.own[lane]); });
  }
  return !open;
}

void Visits::check_exit(const Cta& cta) const {
  const Host& host = hosts_[cta.rank];
  for (const auto& [by, visit] : host.visits) {
    if (is_over(host, by.address, visit.phase) || is_known(cta, by, visit.time, &Knowledge::seen))
      continue;
    report(cta, by, visit);
  }
  for (const auto& [barrier, commit] : host.commits) {
    if (!is_over(host, barrier, commit.phase)) report(cta, barrier, commit);
  }
}

// If the other CTA arrived at the cluster barrier without .release, this CTA still lives long
// enough for its loads, since their values have arrived. No rule says so for stores and arrivals
// that may be on their way.
void Visits::report(const Cta& cta, const By& by, const Visit& visit) const {
  const bool relaxed = is_known(cta, by, visit.time, &Knowledge::relaxed);
  if (relaxed && visit.read) return;
  const char* const what = visit.phase != no_phase ? "an arrival at its mbarrier"
                           : visit.read            ? "a load from its shared memory"
                                                   : "a store to its shared memory";
  const std::string text =
      format("the CTA ends while %s at 0x%x by warp %u of the CTA of rank %u may be on its way: %s",
             what, by.address, by.warp % now_.warps, by.warp / now_.warps,
             relaxed ? "the cluster barrier between them was arrived at without release"
                     : "a cluster barrier is missing before the CTA ends") +
      place_of(now_.cluster, by.pc, relaxed ? Severity::formal : Severity::error);
  if (!relaxed) throw Fault(FaultKind::ordering, text);
  report_formal(report::Rule::relaxed_end, cta, by.pc, text);
}

// This is a formal finding only: on hardware the arrival of a commit has always come before the end
// of the CTA that issued it.
void Visits::report(const Cta& cta, uint32_t barrier, const Commit& commit) const {
  report_formal(
      report::Rule::commit_at_end, cta, commit.pc,
      format("the CTA ends while the arrival of a tcgen05.commit at its mbarrier at 0x%x, by warp "
             "%u of the CTA of rank %u, may be on its way: a wait for that mbarrier is missing",
             barrier, commit.warp % now_.warps, commit.warp / now_.warps) +
          place_of(now_.cluster, commit.pc, Severity::formal));
}

void Visits::report_formal(report::Rule rule, const Cta& cta, uint32_t pc,
                           const std::string& text) const {
  const ptx::Instr& in = now_.cluster.launch.function->code[pc];
  const std::string during = format("at the end of the CTA of rank %u", cta.rank);
  report::formal(rule, text, now_.cluster, during.c_str(), in.pos.line, cta.rank);
}

}  // namespace emu::order
