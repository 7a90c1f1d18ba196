// SPDX-License-Identifier: MIT
// Observers of a grid. The machine reports events and knows nothing else about its observers:
// order/ looks for accesses that nothing orders, trace/ draws a time line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/emulator/machine/events.h"
#include "tools/emulator/ptx/module.h"

namespace emu {

class Cluster;
struct Launch;

// The instruction that a cluster executes. Everything reported to observers belongs to this
// instruction and to its lanes.
struct Moment {
  const Warp* warp = nullptr;
  const ptx::Instr* in = nullptr;
  uint32_t active = 0;    // lanes; may be 0
  uint16_t instance = 0;  // a running number of executed instructions
};

// Observes one cluster, which runs on one host thread.
class Observer {
 public:
  virtual ~Observer() = default;

  // If follows(): before() and after() surround every instruction, and tick() comes between two.
  // `now`: how many instructions the cluster has executed.
  virtual bool follows() const { return false; }
  virtual void before(const Warp&, const ptx::Instr&, uint32_t /*active*/, uint64_t /*now*/) {}
  virtual void after(const Warp&, const ptx::Instr&, uint32_t /*active*/, ptx::Step) {}
  virtual void tick(uint64_t /*now*/) {}

  virtual void access(const LaneAccess&) {}
  virtual void access(const WarpAccess&) {}
  virtual void access(const GlobalAccess&) {}
  virtual void happened(const Event&) {}

  // Asynchronous work of the instruction that executes, issued by a lane or by every_lane, and what
  // it will access.
  virtual void begin(Operation, Work, uint32_t /*lane*/) {}
  virtual void access(Operation, const Reach&, Use) {}

  // Asynchronous work has a number. posted(): the current instruction has queued it. completing()
  // and completed(): before and after it takes effect.
  virtual void posted(size_t /*effect*/, const Warp&, const ptx::Instr&) {}
  virtual void completing(size_t /*effect*/) {}
  virtual void completed(size_t /*effect*/) {}

  // How many phases of an mbarrier of its CTA the warp knows to be over.
  virtual uint64_t phases_known(const Warp&, uint32_t /*mbarrier*/) const { return 0; }

  virtual void cta_ended(const Cta&) {}                  // may throw a Fault
  virtual void stopped(const std::string& /*fault*/) {}  // the cluster will not go on
};

// Observes one launch, whose clusters run on several host threads.
class GridObserver {
 public:
  virtual ~GridObserver() = default;
  // The observer that is to watch a cluster that begins; nullptr: none. Called from any of the
  // threads.
  virtual std::shared_ptr<Observer> watch(const Cluster& cluster) = 0;
  virtual void grid_ended(const Launch&) {}  // whole, or with a fault
};

// The observers of one cluster.
class Observers {
 public:
  void add(std::shared_ptr<Observer> observer) {
    if (observer && observer->follows()) followers_.push_back(observer.get());
    if (observer) all_.push_back(std::move(observer));
  }

  Operation begin(Work work, uint32_t lane) {
    const Operation op = Operation(operations_++);
    each([&](Observer& o) { o.begin(op, work, lane); });
    return op;
  }
  size_t posted(const Warp& warp, const ptx::Instr& in) {
    const size_t effect = effects_++;
    each([&](Observer& o) { o.posted(effect, warp, in); });
    return effect;
  }
  void access(const LaneAccess& a) const {
    each([&](Observer& o) { o.access(a); });
  }
  void access(const WarpAccess& a) const {
    each([&](Observer& o) { o.access(a); });
  }
  void access(const GlobalAccess& a) const {
    each([&](Observer& o) { o.access(a); });
  }
  void access(Operation op, const Reach& reach, Use use) const {
    each([&](Observer& o) { o.access(op, reach, use); });
  }
  void tell(const Event& event) const {
    each([&](Observer& o) { o.happened(event); });
  }
  template <class F>
  void each(F f) const {
    for (const auto& observer : all_) f(*observer);
  }
  template <class F>
  void each_follower(F f) const {
    for (Observer* observer : followers_) f(*observer);
  }

 private:
  std::vector<std::shared_ptr<Observer>> all_;
  std::vector<Observer*> followers_;  // of all_
  uint32_t operations_ = 0;
  size_t effects_ = 0;
};

}  // namespace emu
