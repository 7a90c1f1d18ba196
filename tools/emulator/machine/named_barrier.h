// SPDX-License-Identifier: MIT
// The 16 named barriers of a CTA (PTX ISA 9.7.13.1, bar / barrier) and the cluster's one
// (barrier.cluster). A thread that has exited is not waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

class Cta;
class Cluster;
class Warp;

class NamedBarriers {
 public:
  static constexpr uint32_t count = 16;
  static constexpr uint32_t whole_cta = 0;  // the thread count "not given"

  enum class Reduction : uint8_t { none, popc, all, any };

  explicit NamedBarriers(Cta& cta);

  // Lanes `lanes` of `warp` arrive at barrier `id`, which `threads` threads use. Returns the
  // ticket to wait with. Faults: barrier_misuse.
  uint64_t arrive(uint32_t id, uint32_t threads, Warp& warp, uint32_t lanes, const char* who);
  bool passed(uint32_t id, uint64_t ticket) const { return barriers_[id].generation >= ticket; }

  // bar.red: adds the predicates of arriving lanes, and reads the sums of the generation passed
  // last.
  void contribute(uint32_t id, uint32_t lanes, uint32_t true_lanes);
  uint32_t result(uint32_t id, Reduction r) const;

  void threads_exited();  // lanes of this CTA ended: barriers of the whole CTA may be complete
  std::string describe() const;  // the barriers somebody waits at

 private:
  struct Barrier {
    uint32_t threads = whole_cta;
    bool open = false;              // somebody has arrived in this generation
    bool counted = false;           // somebody has named the count of the whole CTA
    std::vector<uint32_t> arrived;  // lanes, per warp
    uint64_t generation = 0;
    uint32_t sum_lanes = 0, sum_true = 0, last_lanes = 0, last_true = 0;
  };
  bool complete(const Barrier& b) const;
  void finish_if_complete(Barrier& b);

  Cta& cta_;
  Barrier barriers_[count];
};

class ClusterBarrier {
 public:
  explicit ClusterBarrier(Cluster& cluster) : cluster_(cluster) {}

  void arrive(Warp& warp, uint32_t lanes);  // Fault: arrived already and has not waited
  bool wait(Warp& warp, uint32_t lanes);    // false: not yet. Fault: has not arrived
  void threads_exited() { finish_if_complete(); }
  std::string describe() const;

 private:
  void finish_if_complete();
  Cluster& cluster_;
  uint64_t generation_ = 0;
};

}  // namespace emu
