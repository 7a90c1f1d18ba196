// SPDX-License-Identifier: MIT
// The log callback. What goes to stderr without one: driver.cc.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "nvfp4_gemm.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

namespace {

using Lines = std::vector<std::string>;

void keep(void* user, int32_t level, const char* line) {
  static_cast<Lines*>(user)->push_back(std::to_string(level) + " " + line);
}

void count(void* user, int32_t, const char*) { ++*static_cast<std::atomic<int>*>(user); }

void fail_once() { nvfp4_gemm_supported(nullptr, 100); }

// Back to stderr, which is silent in tests, at the end of a test.
struct NoCallback {
  ~NoCallback() { nvfp4_set_log_callback(nullptr, nullptr, 0); }
};

}  // namespace

TEST_CASE("A log callback gets the lines up to its level") {
  const NoCallback at_the_end;
  Lines lines;
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 1) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines == Lines{"1 NVFP4_STATUS_NULL_POINTER: desc is NULL and is required here"});
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 0) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 1);
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 3) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 2);
  REQUIRE(nvfp4_set_log_callback(nullptr, nullptr, 0) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 2);
}

TEST_CASE("A level that is none is refused and changes nothing") {
  const NoCallback at_the_end;
  Lines lines;
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 1) == NVFP4_SUCCESS);
  CHECK(nvfp4_set_log_callback(nullptr, nullptr, 4) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_set_log_callback(nullptr, nullptr, -1) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(lines == Lines{"1 NVFP4_STATUS_INVALID_VALUE: level = 4 is none of 0 to 3",
                       "1 NVFP4_STATUS_INVALID_VALUE: level = -1 is none of 0 to 3"});
}

TEST_CASE("Threads log while the callback changes, and no line is lost") {
  const NoCallback at_the_end;
  constexpr int kThreads = 4, kCalls = 2000;
  std::atomic<int> even{0}, odd{0};
  REQUIRE(nvfp4_set_log_callback(count, &even, 1) == NVFP4_SUCCESS);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int call = 0; call < kCalls; ++call) fail_once();
    });
  }
  for (int i = 1; i <= 200; ++i) nvfp4_set_log_callback(count, i % 2 ? &odd : &even, 1);
  for (std::thread& thread : threads) thread.join();
  CHECK(even + odd == kThreads * kCalls);
}

TEST_CASE("With a callback nothing goes to stderr, whatever NVFP4_LOG says") {
  using host_test::DriverChoice;
  using host_test::starting_with;
  const Lines lines = host_test::probe(DriverChoice::fake, "callback run", "NVFP4_LOG=3");
  CHECK(starting_with(lines, "nvfp4: ").empty());
  const Lines caught = starting_with(lines, "callback 2: gemm ");
  REQUIRE(caught.size() == 1);
  CHECK(host_test::contains(caught[0],
                            " variant=sm100_128x64x256 grid=12 replay=\"nvfp4 run --m "
                            "256 --n 384 --k 512 --alpha 1.5 --b-ld 544 --d-ld 385\""));
}
