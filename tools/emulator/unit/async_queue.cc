// SPDX-License-Identifier: MIT
// See async_queue.h.
#include "async_queue.h"

#include <iterator>

namespace emu {

AsyncQueue::AsyncQueue(Order order, uint64_t seed) : order_(order), state_(seed) {
  // How eager this run's hardware is, from "one in two instructions" to "one in 128": a single rate
  // would never show the races of the others.
  eagerness_ = 2ull << draw() % 7;
}

// splitmix64 (Steele, Lea, Flood 2014): the same numbers on every host.
uint64_t AsyncQueue::draw() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

void AsyncQueue::post(Chain chain, std::string what, std::function<void()> effect) {
  chains_[chain].push_back({std::move(what), std::move(effect)});
  ++size_;
  if (order_ == Order::soonest)
    while (complete_one()) continue;
}

bool AsyncQueue::tick() {
  if (order_ != Order::random || empty() || draw() % eagerness_) return false;
  return complete_one();
}

// soonest: the oldest chain; latest: the youngest, so that work overtakes whatever it may overtake.
bool AsyncQueue::complete_one() {
  if (empty()) return false;
  auto it = chains_.begin();
  if (order_ == Order::latest) it = std::prev(chains_.end());
  if (order_ == Order::random) std::advance(it, draw() % chains_.size());
  Work work = std::move(it->second.front());
  it->second.pop_front();
  if (it->second.empty()) chains_.erase(it);
  --size_;
  work.effect();
  return true;
}

std::string AsyncQueue::pending() const {
  std::string text;
  for (const auto& [chain, works] : chains_)
    for (const Work& work : works) text += work.what + "\n";
  return text;
}

bool AsyncQueue::late() {
  return order_ == Order::latest || (order_ == Order::random && draw() % 2);
}

}  // namespace emu
