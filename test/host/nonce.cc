// SPDX-License-Identifier: MIT
// The nonces of runs with even shares.
#include "host/family/nonce.h"

#include <set>
#include <thread>
#include <vector>

#include "tools/testing/catch.h"

TEST_CASE("each run has a nonce of its own and in any thread") {
  constexpr int kThreads = 4, kDraws = 1000;
  std::vector<std::vector<uint64_t>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& own : drawn) {
    threads.emplace_back([&own] {
      for (int i = 0; i < kDraws; ++i) own.push_back(nvfp4::draw_nonce());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const std::vector<uint64_t>& own : drawn) all.insert(own.begin(), own.end());
  CHECK(all.size() == size_t{kThreads} * kDraws);
  CHECK(*all.begin() != 0);
  CHECK(*all.rbegin() < uint64_t{1} << nvfp4::kNonceBits);
}
