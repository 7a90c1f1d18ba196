// SPDX-License-Identifier: MIT
// The log callback. What goes to stderr without one: driver.cc.
#include <atomic>
#include <thread>

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

TEST_CASE("Threads log while the callback changes and no line is lost") {
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

TEST_CASE("With a callback nothing goes to stderr whatever NVFP4_LOG says") {
  using host_test::DriverChoice;
  using host_test::starting_with;
  const Lines lines = host_test::probe(DriverChoice::fake, "callback run", "NVFP4_LOG=3");
  CHECK(starting_with(lines, "nvfp4: ").empty());
  const Lines caught = starting_with(lines, "callback 2: gemm ");
  REQUIRE(caught.size() == 1);
  CHECK(host_test::contains(caught[0], " image=\""));
  CHECK(host_test::contains(caught[0],
                            " variant=sm100_128x64x256 grid=12 replay=\"nvfp4 run --m "
                            "256 --n 384 --k 512 --alpha 1.5 --b-ld 544 --d-ld 385\""));
}

// The first use opens the driver and loads images, while other threads wait for it: no line may
// leave before they can go on. A thread enters the callback once, so calls inside it log nothing.
TEST_CASE("A callback that uses the library during the first use waits for nobody") {
  using namespace host_test;
  const std::string first = GENERATE("run", "prepare", "plan");
  const bool driver_is_open = GENERATE(false, true);  // K = 0 opens it and loads no image
  CAPTURE(first, driver_is_open);
  const Lines lines =
      probe(DriverChoice::fake, (driver_is_open ? "run-k0 " : "") + ("callback-calls " + first));
  const Lines logged = starting_with(lines, "line ");
  REQUIRE(!logged.empty());
  CHECK(logged[0] == (driver_is_open ? "line 3: sm_100a cubin: cuLibraryGetKernel succeeds"
                                     : "line 3: driver opened, 1 device(s)"));
  CHECK(starting_with(lines, "inside NVFP4_SUCCESS").size() == 2 * logged.size());
  CHECK(starting_with(lines, "inside NVFP4_STATUS_NULL_POINTER").size() == logged.size());
}

TEST_CASE("Callbacks of 32 threads that use the library during the first use wait for nobody") {
  using namespace host_test;
  const Lines lines = probe(DriverChoice::fake, "callback-calls threads");
  CHECK(starting_with(lines, "threads ") == Lines{"threads NVFP4_SUCCESS"});
}

TEST_CASE("A callback that uses the library while the driver or an image is refused") {
  using namespace host_test;
  struct Row {
    const char *answers, *line;
  };
  const Row row =
      GENERATE(Row{"cuInit:1:803,cuInit:2:0", "NVFP4_STATUS_NO_DRIVER: cuInit answers "},
               Row{"cuLibraryLoadData:1:200,cuLibraryLoadData:2:0",
                   "NVFP4_STATUS_IMAGE_LOAD: cuLibraryLoadData refuses the sm_100a cubin with "});
  CAPTURE(row.answers);
  const bool opens = std::string(row.answers).rfind("cuInit", 0) == 0;
  const Lines lines =
      probe(DriverChoice::fake, std::string(opens ? "" : "run-k0 ") + "callback-calls run run",
            std::string("FAKE_ANSWERS=") + row.answers);
  CHECK(starting_with(lines, std::string("line 1: ") + row.line).size() == 1);
  // The sentence is that of the run and not of a call inside its callback.
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == (opens ? 3 : 4));
  CHECK(contains(answers[answers.size() - 2], row.line));
  CHECK(answers.back() == "NVFP4_SUCCESS: ");
}

TEST_CASE("A failing call inside a callback leaves the caller's last error as it was") {
  const NoCallback at_the_end;
  const auto fail_otherwise = [](void*, int32_t, const char*) {
    CHECK(nvfp4_set_log_callback(nullptr, nullptr, 4) == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()) == "level = 4 is none of 0 to 3");
  };
  REQUIRE(nvfp4_set_log_callback(fail_otherwise, nullptr, 1) == NVFP4_SUCCESS);
  fail_once();
  CHECK(std::string(nvfp4_last_error()) == "desc is NULL and is required here");
}
