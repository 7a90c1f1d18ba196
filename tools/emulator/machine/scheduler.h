// SPDX-License-Identifier: MIT
// Runs one cluster: which fragment of which warp executes next, and what happens when none can.
#pragma once

#include <memory>
#include <vector>

#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/policy.h"

namespace emu {

class Scheduler {
 public:
  Scheduler(const Launch& launch, Dim3 cluster_id, uint64_t seed, Supply* supply);

  // Runs about `instructions` warp instructions, fewer where all that its warps do is to poll.
  // State::still: no warp can go on unless another cluster changes global memory; run() can be
  // called again to look again. Throws Fault with the full report.
  enum class State : uint8_t { going, polling, still, ended };
  State run(uint64_t instructions);

  uint64_t executed() const { return executed_; }
  Counters counters() const;
  Cluster& cluster() { return *cluster_; }

 private:
  static constexpr uint64_t moves = ~0ull;
  struct Entry {
    Warp* warp;
    bool late;                  // Policy::is_late()
    uint64_t rests_until = 0;   // in executed_
    uint64_t still_at = moves;  // Cluster::progress when no fragment could go on
  };
  bool is_still(const Entry& entry) const;
  bool all_poll() const;
  bool others_go_on();
  bool wake_resting();

  // One quantum of the next warp that can go on; false: there is none.
  bool turn();
  enum class Of : uint8_t {
    awake,    // the warps that neither rest nor are late
    in_time,  // those that are not late
    late,     // the others
  };
  bool turn(Of which);
  bool late_turn();
  bool late_wait() const;
  void choose_late();
  bool turn_of(Entry& entry);
  void execute(Entry& entry, uint64_t quantum);
  bool step(Warp& warp);  // one instruction; false: the fragment blocked, parked or ended
  void complete_work(bool forced);
  bool nothing_runs();  // true: it is a standstill
  void end_warp(Warp& warp);
  void end_cluster();

  std::unique_ptr<Cluster> cluster_;
  const std::vector<ptx::Instr>& code_;
  std::vector<Entry> live_;
  size_t next_ = 0;  // in live_: whose turn it is
  Policy policy_;
  uint64_t executed_ = 0, limit_;
  uint64_t seen_progress_ = 0,
           seen_at_ = 0;         // Cluster::progress, and executed_ when it last changed
  uint32_t expired_rounds_ = 0;  // idle rounds since then
  bool polled_ = false;          // the turn ended with Step::polled
  size_t polling_turns_ = 0;     // so many in a row did
};

}  // namespace emu
