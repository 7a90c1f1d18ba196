// SPDX-License-Identifier: MIT
// What threads, and commits of threads, do to the shared memory of another CTA of their cluster.
// That CTA may end only after it, whatever the schedule of this run was: its memory is the next
// CTA's then.
#pragma once

#include <map>
#include <vector>

#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/operations.h"

namespace emu::order {

class Visits {
 public:
  Visits(const Now& now, const Parties& parties);

  // An access by lanes of the current instruction, reported before they signal anything. Accesses
  // to the CTA's own memory are ignored.
  void access(const Cta& cta, uint32_t address, uint32_t lanes, bool read);
  void arrival(const Cta& cta, uint32_t barrier, uint32_t lanes, uint64_t phase);
  // A tcgen05.commit has arrived. It may reach one CTA later than another: only a wait there shows
  // it.
  void arrival(const Cta& cta, uint32_t barrier, const Issued& commit, uint64_t phase);
  // A thread of that CTA has seen that the phases before `phase` are over.
  void waited(const Cta& cta, uint32_t barrier, uint64_t phase);

  // At the end of a CTA: Fault when it does not come after all visits.
  void check_exit(const Cta& cta) const;

 private:
  // A later one of the same lanes at the same place stands for those before it.
  struct By {
    uint32_t warp, lanes, pc, address;
    auto operator<=>(const By&) const = default;
  };
  struct Visit {
    uint32_t time;
    bool read;
    uint64_t phase;  // that the arrival belongs to; no_phase: it is none
  };
  struct Commit {
    uint32_t warp, pc;
    uint64_t phase;
  };
  struct Host {
    std::map<By, Visit> visits;
    std::map<uint32_t, Commit> commits;        // the last one by barrier
    std::map<uint32_t, uint64_t> phases_over;  // by barrier
  };
  static constexpr uint64_t no_phase = ~0ull;
  void add(const Cta& cta, uint32_t address, uint32_t lanes, const Visit& visit);
  bool is_over(const Host& host, uint32_t barrier, uint64_t phase) const;
  bool is_known(const Cta& cta, const By& by, uint32_t time, Clock Knowledge::*clock) const;
  void report(const Cta& cta, const By& by, const Visit& visit) const;
  void report(const Cta& cta, uint32_t barrier, const Commit& commit) const;
  void report_formal(report::Rule rule, const Cta& cta, uint32_t pc, const std::string& text) const;

  const Now& now_;
  const Parties& parties_;
  std::vector<Host> hosts_;  // by rank
};

}  // namespace emu::order
