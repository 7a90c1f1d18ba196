// SPDX-License-Identifier: MIT
// When does nothing in a grid go on any more? A cluster that stands still may be waiting for
// another one through global memory, which runs on another host thread or has not started.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace emu {

class Standstill {
 public:
  explicit Standstill(uint64_t threads) : running_(threads) {}

  uint64_t moves() const { return moves_; }  // how often any cluster has continued
  void moved();
  void leave();  // a host thread has no clusters left
  void stop();   // wakes all

  // Called when no cluster of this thread has continued since `moves`. True: no cluster of any
  // thread can continue, and this thread reports it. False: one has continued since, or stop() was
  // called.
  bool wait(uint64_t moves);

 private:
  std::atomic<uint64_t> moves_ = 0, waiting_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  uint64_t running_;
  bool stopped_ = false;
};

}  // namespace emu
