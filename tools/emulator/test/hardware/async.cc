// SPDX-License-Identifier: MIT
// The adversarial clock and copy groups.
#include <algorithm>

#include "tools/emulator/hardware/async_queue.h"
#include "tools/emulator/hardware/copy_groups.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

namespace {

const AsyncQueue::Name named = [] { return "work"; };

// Posts 0..n-1 on `chains` chains in turn and lets everything complete.
std::vector<int> run(Order order, uint64_t seed, int n, int chains) {
  AsyncQueue q(order, seed);
  std::vector<AsyncQueue::Chain> chain;
  for (int i = 0; i < chains; ++i) chain.push_back(q.new_chain());
  std::vector<int> done;
  for (int i = 0; i < n; ++i)
    q.post(chain[size_t(i % chains)], named, [&done, i] { done.push_back(i); });
  while (q.complete_one()) continue;
  CHECK(q.empty());
  return done;
}

}  // namespace

TEST_CASE("work on one chain completes in the order posted whatever the order setting") {
  const Order order = GENERATE(Order::soonest, Order::latest, Order::random);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> done = run(order, seed, 12, 3);
    REQUIRE(done.size() == 12);
    for (int i = 0; i + 3 < 12; ++i)
      CHECK(std::find(done.begin(), done.end(), i) < std::find(done.begin(), done.end(), i + 3));
  }
}

TEST_CASE("soonest completes work when it is posted and latest only when told to") {
  bool done = false;
  AsyncQueue soonest(Order::soonest, 1), latest(Order::latest, 1);
  soonest.post(soonest.new_chain(), named, [&] { done = true; });
  CHECK(done);
  done = false;
  latest.post(latest.new_chain(), named, [&] { done = true; });
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(latest.tick());
  CHECK_FALSE(done);
  CHECK(latest.pending() == "work\n");
  CHECK(latest.complete_one());
  CHECK(done);
}

TEST_CASE("random completes work by itself in an order that the seed decides") {
  CHECK(run(Order::random, 7, 16, 16) == run(Order::random, 7, 16, 16));
  CHECK(run(Order::random, 7, 16, 16) != run(Order::random, 8, 16, 16));
  AsyncQueue q(Order::random, 3);
  q.post(q.new_chain(), named, [] {});
  int ticks = 0;
  while (!q.tick() && ticks < 100000) ++ticks;
  CHECK(q.empty());
}

TEST_CASE("random lets some work stay behind for long and at a standstill only after other work") {
  uint64_t longest = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    AsyncQueue q(Order::random, seed);
    for (int i = 0; i < 32; ++i) q.post(q.new_chain(), named, [] {});
    uint64_t ticks = 0;
    while (!q.empty() && ticks < 2000000) ++ticks, q.tick();
    CHECK(q.empty());
    longest = std::max(longest, ticks);
  }
  CHECK(longest > 100000);  // alone, 32 pieces take a few thousand at most
}

TEST_CASE("a copy group is complete when its copies are and the youngest may be left open") {
  CopyGroups g;
  auto a = g.issue(5);
  auto b = g.issue(5);
  CHECK(g.complete(5, 0, false));  // nothing is committed yet
  CHECK_FALSE(g.all_complete(5));
  g.commit(5);
  auto c = g.issue(5);
  g.commit(5);
  CHECK_FALSE(g.complete(5, 0, false));
  a->read = a->done = b->read = true;
  CHECK_FALSE(g.complete(5, 1, false));
  CHECK(g.complete(5, 1, true));
  b->done = true;
  CHECK(g.complete(5, 1, false));
  CHECK_FALSE(g.complete(5, 0, true));
  c->read = c->done = true;
  CHECK(g.complete(5, 0, false));
  CHECK(g.complete(6, 0, false));  // another thread's groups are its own
}
