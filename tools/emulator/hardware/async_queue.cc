// SPDX-License-Identifier: MIT
// See async_queue.h.
#include "tools/emulator/hardware/async_queue.h"

#include <algorithm>
#include <iterator>

namespace emu {

namespace {

// Where there are many at once, for example the stores of st.async, more than one completes between
// two instructions: one at a time, twelve thousand of them took 10 s of waiting warps.
constexpr size_t chains_at_once = 64;

}  // namespace

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

// random: one chain in sixteen stays behind those posted after it, for up to a million instructions
// of its cluster, as a copy does that misses the L2. Without such chains no run showed an error
// that an H200 shows in one of several thousand launches: a wait succeeds because an older phase of
// the same parity is complete, although the phase before the awaited one is still open
// (docs/notebook.md, rings of 6 slots shared by groups). With them 2 of 10 seeds show it.
AsyncQueue::Chain AsyncQueue::new_chain() {
  const Chain chain = next_chain_++;
  if (order_ == Order::random && draw() % 16 == 0)
    lag_until_[chain] = ticks_ + (1ull << draw() % 21);
  return chain;
}

AsyncQueue::Pending& AsyncQueue::pending(Chain chain) {
  const auto at = std::lower_bound(chains_.begin(), chains_.end(), chain,
                                   [](const Pending& p, Chain number) { return p.chain < number; });
  if (at != chains_.end() && at->chain == chain) return *at;
  const auto lag = lag_until_.find(chain);
  Pending p{chain, lag == lag_until_.end() ? 0 : lag->second, {}};
  if (p.lag_until) lag_until_.erase(lag);
  if (!spare_.empty()) {
    p.works = std::move(spare_.back());
    spare_.pop_back();
  }
  return *chains_.insert(at, std::move(p));
}

void AsyncQueue::post(Chain chain, Name what, std::function<void()> effect) {
  pending(chain).works.push_back({std::move(what), std::move(effect)});
  ++size_;
  if (order_ == Order::soonest)
    while (complete_one()) continue;
}

bool AsyncQueue::tick() {
  ++ticks_;
  if (order_ != Order::random || empty() || draw() % eagerness_) return false;
  const auto waits = [&](const Pending& p) { return lags(p); };
  bool any = false;
  for (size_t n = 1 + chains_.size() / chains_at_once; n; --n, any = true)
    if (std::all_of(chains_.begin(), chains_.end(), waits) || !complete_one()) break;
  return any;
}

// soonest: the oldest chain; latest: the youngest, so that work overtakes whatever it may overtake.
bool AsyncQueue::complete_one() {
  if (empty()) return false;
  auto it = chains_.begin();
  if (order_ == Order::latest) it = std::prev(chains_.end());
  if (order_ == Order::random) {
    // From a drawn one on, the first that does not lag; if all do, the drawn one.
    std::advance(it, draw() % chains_.size());
    auto other = it;
    for (size_t n = chains_.size(); n && lags(*other); --n)
      if (++other == chains_.end()) other = chains_.begin();
    if (!lags(*other)) it = other;
  }
  Work work = std::move(it->works[it->next]);
  if (++it->next == it->works.size()) {
    it->works.clear();
    spare_.push_back(std::move(it->works));
    chains_.erase(it);
  }
  --size_;
  work.effect();
  return true;
}

std::string AsyncQueue::pending() const {
  std::string text;
  for (const Pending& p : chains_)
    for (size_t i = p.next; i < p.works.size(); ++i) text += p.works[i].what() + "\n";
  return text;
}

bool AsyncQueue::late() {
  return order_ == Order::latest || (order_ == Order::random && draw() % 2);
}

}  // namespace emu
