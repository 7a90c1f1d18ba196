// SPDX-License-Identifier: MIT
// When each chosen block of a cluster executed what: instructions of warps, waits, and asynchronous
// work from issue to completion.
//
// Time is the cluster's own count of executed warp instructions; instruction n takes [n, n + 1). It
// says what came before what in this run, nothing about a GPU's clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tools/emulator/machine/machine.h"

namespace emu {

// A row of kinds.def.
struct TraceKind {
  const char *opcode, *category, *unit, *role;
};

// One box on the time line.
struct TraceSpan {
  uint64_t begin = 0, end = 0;
  const TraceKind* kind = nullptr;
  const ptx::Instr* in = nullptr;
  uint32_t rank = 0;                        // of the CTA in its cluster
  uint32_t warp = 0, lanes = 0;             // who executed it
  bool asynchronous = false;                // on the unit's track instead of the warp's
  std::map<std::string, uint64_t> counted;  // what it added to the counters
  std::string barrier;           // the mbarrier that it waits for, or whose phase it ended
  uint64_t tries = 0;            // of a wait
  size_t released_by = no_span;  // the span that ended the phase it waited for
  static constexpr size_t no_span = ~size_t(0);
};

class Timeline : public Observer {
 public:
  // For the blocks that EMU_TRACE_BLOCKS names; nullptr if the cluster has none of them.
  static std::shared_ptr<Timeline> of(const Cluster& cluster);

  bool follows() const override { return true; }
  void before(const Warp& warp, const ptx::Instr& in, uint32_t active, uint64_t now) override;
  void after(const Warp& warp, const ptx::Instr& in, uint32_t active, ptx::Step step) override;
  void tick(uint64_t now) override { now_ = now; }
  void posted(size_t effect, const Warp& warp, const ptx::Instr& in) override;
  void completing(size_t effect) override;
  void completed(size_t effect) override;
  void stopped(const std::string& fault) override;  // empty text: it ended without one

  const std::vector<TraceSpan>& spans() const { return spans_; }
  Dim3 block(uint32_t rank) const { return blocks_[rank]; }
  bool shows(uint32_t rank) const { return shown_[rank]; }
  uint32_t ranks() const { return uint32_t(blocks_.size()); }
  uint64_t end() const { return now_; }
  const std::string& fault() const { return fault_; }

 private:
  explicit Timeline(const Cluster& cluster) : cluster_(cluster) {}
  using Barrier = std::pair<uint32_t, uint32_t>;               // rank, address
  using Waiter = std::tuple<const Warp*, uint32_t, uint32_t>;  // pc, lanes
  struct Ender {
    uint64_t phase;  // that ended
    size_t span;
  };

  const TraceKind* kind_of(const ptx::Instr& in);
  TraceSpan span_of(const Warp& warp, const ptx::Instr& in, uint32_t active) const;
  std::map<Barrier, uint64_t> phases() const;
  void note_ended_phases(size_t span);
  void note_barrier(TraceSpan& wait, const Warp& warp) const;

  const Cluster& cluster_;
  std::vector<Dim3> blocks_;  // by rank
  std::vector<bool> shown_;
  std::vector<TraceSpan> spans_;
  std::vector<size_t> effects_;  // the span of each effect, in spans_
  uint64_t now_ = 0;
  std::unordered_map<const char*, const TraceKind*> kinds_;  // by opcode
  const TraceKind* kind_ = nullptr;     // of the instruction that executes, nullptr: not shown
  Counters counters_;                   // before the current instruction
  size_t issued_from_ = 0;              // size of spans_ before it
  std::map<Waiter, TraceSpan> waits_;   // not yet over
  std::map<Barrier, uint64_t> phases_;  // phases before the current event
  std::map<Barrier, Ender> enders_;     // of each barrier's last phase
  std::string fault_;
};

}  // namespace emu
