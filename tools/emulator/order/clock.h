// SPDX-License-Identifier: MIT
// Vector clocks: how far into the work of each agent somebody's knowledge reaches.
//
// An agent is a warp, or something that completes asynchronous work in order: an mbarrier (its
// phases), a thread's tcgen05 pipe, its bulk copies, a warp's tcgen05.ld. Agents are numbered
// within a cluster. Most knowledge of a warp is of all its lanes alike; what one lane handed on
// alone stands beside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace emu {

class Clock {
 public:
  uint32_t operator[](uint32_t agent) const { return agent < times_.size() ? times_[agent] : 0; }
  void raise(uint32_t agent, uint32_t time) {
    if (agent >= times_.size()) times_.resize(agent + 1);
    times_[agent] = std::max(times_[agent], time);
  }
  void raise_lane(uint32_t warp, uint32_t lane, uint32_t time);
  void join(const Clock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
    for (size_t i = 0; i < other.times_.size(); ++i)
      times_[i] = std::max(times_[i], other.times_[i]);
    if (!other.lanes_.empty()) join_lanes(other);
  }

  bool empty() const { return times_.empty() && lanes_.empty(); }

  // Does it reach `time` of these lanes of a warp?
  bool reaches(uint32_t warp, uint32_t lanes, uint32_t time) const {
    return (*this)[warp] >= time || (!lanes_.empty() && reaches_lanes(warp, lanes, time));
  }
  // .. of any lane?
  bool reaches_one(uint32_t warp, uint32_t time) const { return reaches(warp, 0, time); }

 private:
  struct LaneTime {
    uint32_t thread, time;  // 32 * warp + lane
  };
  void join_lanes(const Clock& other);
  bool reaches_lanes(uint32_t warp, uint32_t lanes, uint32_t time) const;

  std::vector<uint32_t> times_;  // of a warp: how far all its lanes are known
  std::vector<LaneTime> lanes_;  // by thread: those of which more is known
};

struct Knowledge;

// By the address of the tensor map that a fence named.
using Maps = std::map<uint64_t, Clock>;
inline void join(Maps& to, const Maps& from) {
  for (const auto& [address, clock] : from) to[address].join(clock);
}

// Another cluster: its agents' work, and what of it a proxy fence is behind.
struct Far {
  Clock seen, strict, fenced, flushed, loaded;
  Clock updated;  // of `loaded`, what atomic updates have brought
  Clock updates;  // the atomic updates themselves that others have met, and no more
  Maps mapped;
  void join(const Far& o) {
    seen.join(o.seen);
    strict.join(o.strict);
    fenced.join(o.fenced);
    flushed.join(o.flushed);
    loaded.join(o.loaded);
    updated.join(o.updated);
    updates.join(o.updates);
    emu::join(mapped, o.mapped);
  }
  void join(const Knowledge& of_that_cluster);
};
using Foreign = std::map<uint32_t, Far>;  // by cluster
inline void join(Foreign& to, const Foreign& from) {
  for (const auto& [cluster, far] : from) to[cluster].join(far);
}

// What a lane, or all of a warp, know to have happened before, or what a release hands to an
// acquire.
struct Knowledge {
  Clock seen;           // on hardware
  Clock strict;         // by the manual: scopes of both sides reach far enough, lanes synchronised
  Clock fenced;         // generic accesses to shared memory with a proxy fence after them
  Clock fenced_global;  // the same for global memory
  Clock relaxed;        // seen, had arrivals at cluster barriers not been relaxed
  Clock fresh;          // seen, by an acquire that reaches beyond the CTA
  Clock inits;          // mbarrier.init with a fence.mbarrier_init after it
  Clock tensor;         // tcgen05 work that tcgen05.fence carried over
  // What came by way of a barrier from a thread that had a fence of the GPU's scope after it, and
  // what relaxed loads of one had shown that had none yet. A relaxed store after the barrier, a
  // fence after it, do the rest on hardware; the manual wants both in one thread.
  Clock flushed, loaded;
  Clock updates;  // the atomic update that hands this on

  Maps mapped;     // global memory, with a fence of the tensormap proxy
  Foreign others;  // work of other clusters

  void join(const Knowledge& o) {
    emu::join(others, o.others);
    seen.join(o.seen);
    strict.join(o.strict);
    fenced.join(o.fenced);
    fenced_global.join(o.fenced_global);
    emu::join(mapped, o.mapped);
    relaxed.join(o.relaxed);
    fresh.join(o.fresh);
    inits.join(o.inits);
    tensor.join(o.tensor);
    flushed.join(o.flushed);
    loaded.join(o.loaded);
    updates.join(o.updates);
  }
};

// join_seen: every order except manual-only; join_acquired: manual-only as well. A warp has one
// state of the order of tcgen05 work.
void join_seen(Knowledge& to, const Knowledge& from);
void join_acquired(Knowledge& to, const Knowledge& from);

inline void Far::join(const Knowledge& k) {
  seen.join(k.seen);
  strict.join(k.strict);
  fenced.join(k.fenced_global);
  flushed.join(k.flushed);
  loaded.join(k.loaded);
  updates.join(k.updates);
  emu::join(mapped, k.mapped);
}

}  // namespace emu
