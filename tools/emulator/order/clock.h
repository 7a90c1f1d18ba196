// SPDX-License-Identifier: MIT
// Vector clocks: how far into the work of each agent somebody's knowledge reaches.
//
// An agent is a warp, or something that completes asynchronous work in order: an mbarrier (its
// phases), a thread's tcgen05 pipe, its bulk copies, a warp's tcgen05.ld. Agents are numbered
// within a cluster. What is known of a warp is mostly known of all its lanes: times_ has that. What
// is known of single lanes only is in lanes_.
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

  // Whether the work of these lanes of `warp` is known up to `time`.
  bool reaches(uint32_t warp, uint32_t lanes, uint32_t time) const {
    return (*this)[warp] >= time || (!lanes_.empty() && reaches_lanes(warp, lanes, time));
  }
  // The same for at least one lane.
  bool reaches_one(uint32_t warp, uint32_t time) const { return reaches(warp, 0, time); }

 private:
  struct LaneTime {
    uint32_t thread, time;  // 32 * warp + lane
  };
  void join_lanes(const Clock& other);
  bool reaches_lanes(uint32_t warp, uint32_t lanes, uint32_t time) const;

  std::vector<uint32_t> times_;  // by agent; of a warp: up to which time all its lanes are known
  std::vector<LaneTime> lanes_;  // lanes that are known further, sorted by thread
};

struct Knowledge;

// By the address of the tensor map that a fence named.
using Maps = std::map<uint64_t, Clock>;
inline void join(Maps& to, const Maps& from) {
  for (const auto& [address, clock] : from) to[address].join(clock);
}

// What is known of another cluster's work. fenced: the part of it that a proxy fence has followed.
struct Far {
  Clock seen, strict, fenced, flushed, loaded;
  Clock updated;  // the part of `loaded` that was learnt through atomic updates
  Clock updates;  // atomic updates that another thread has read, without what came before them
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

// What a lane, or every lane of a warp, knows to have happened before. It is also the message from
// a release to an acquire.
struct Knowledge {
  Clock seen;           // ordered before as far as hardware is known to order
  Clock strict;         // ordered before by the manual: scopes suffice, lanes are synchronised
  Clock fenced;         // generic accesses to shared memory with a proxy fence after them
  Clock fenced_global;  // the same for global memory
  Clock relaxed;        // as `seen`, if each arrival at a cluster barrier had released
  Clock fresh;          // the part of `seen` acquired with a scope wider than the CTA
  Clock inits;          // mbarrier.init with a fence.mbarrier_init after it
  Clock tensor;         // tcgen05 work that tcgen05.fence carried over
  // Two kinds of order of which this thread received one half at a barrier. flushed: work after
  // which the sender executed a fence of the GPU's scope; a relaxed store after the barrier
  // releases it. loaded: work that the sender knows by relaxed loads, without a fence so far; a
  // fence after the barrier acquires it. Hardware orders both, but the manual wants one thread to
  // execute both the fence and the access.
  Clock flushed, loaded;
  Clock updates;  // the atomic updates that released this knowledge

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

// join_seen joins what hardware orders: all but `strict` and `updates`. join_acquired joins
// `strict`, too. Neither joins `tensor`, which is kept once for a warp.
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
