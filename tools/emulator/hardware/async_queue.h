// SPDX-License-Identifier: MIT
// Asynchronous work of one cluster and the adversarial clock that completes it.
//
// Work on one chain takes effect in the order posted (the tcgen05 pipe of a CTA is one chain); work
// on different chains in any order (each TMA copy has a chain of its own).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/emulator/base/settings.h"

namespace emu {

class AsyncQueue {
 public:
  AsyncQueue(Order order, uint64_t seed);

  using Chain = uint64_t;
  Chain new_chain();

  // `effect` may throw Fault. `what` returns the name of the work ("TMA load of .. at PTX line
  // 12"); it is called only when a report is written.
  using Name = std::function<std::string()>;
  void post(Chain chain, Name what, std::function<void()> effect);

  bool empty() const { return size_ == 0; }
  // Called between instructions: lets work complete as the order likes. True if something did.
  bool tick();
  // Completes one piece of work although the order would rather wait. False if there is none.
  bool complete_one();
  std::string pending() const;  // for reports: what has not completed
  // Returns true if work that could take effect now is held back. Order::soonest: never.
  // Order::latest: always. Order::random: late() draws a number.
  bool late();

 private:
  struct Work {
    Name what;
    std::function<void()> effect;
  };
  struct Pending {  // a chain that has work
    Chain chain;
    uint64_t lag_until;
    std::vector<Work> works;
    size_t next = 0;  // the first of `works` that is not done
  };
  uint64_t draw();  // the seed's next number
  bool lags(const Pending& p) const { return ticks_ < p.lag_until; }
  Pending& pending(Chain chain);
  Order order_;
  uint64_t state_, eagerness_ = 1, next_chain_ = 1;
  uint64_t ticks_ = 0;
  // For chains that are still empty: work that is posted later does not complete before this tick.
  std::map<Chain, uint64_t> lag_until_;
  size_t size_ = 0;
  std::vector<Pending> chains_;           // sorted by number
  std::vector<std::vector<Work>> spare_;  // emptied, for new chains
};

}  // namespace emu
