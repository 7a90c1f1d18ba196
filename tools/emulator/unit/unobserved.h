// SPDX-License-Identifier: MIT
// Asynchronous work that took effect and that nobody has waited for yet.
//
// That it took effect early is luck: on another run, or on hardware, it may be slower. So what it
// touches stays in flight (in_flight.h) until a test_wait or try_wait has answered that its phase
// is over, whoever asked. A forgotten wait is found in every completion order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

namespace emu {

class Unobserved {
 public:
  // Work of the current `phase` of the mbarrier at `barrier`; `release` takes it out of flight.
  void add(uint32_t barrier, uint64_t phase, std::function<void()> release);
  // A wait has shown that the phases before `phase` are over.
  void observe(uint32_t barrier, uint64_t phase);

 private:
  struct Work {
    uint64_t phase;
    std::function<void()> release;
  };
  std::map<uint32_t, std::deque<Work>> works_;  // by barrier, oldest phase first
};

}  // namespace emu
