// SPDX-License-Identifier: MIT
// Host memory that runs out: every allocation of the process fails in turn, once and from then on,
// the loader's for dlopen included. The driver is the idle one, which allocates nothing itself.
#include <cstdio>

#include "test/host/child.h"
#include "tools/testing/catch.h"

using host_test::contains;
using host_test::DriverChoice;
using host_test::probe;
using host_test::starting_with;
using Lines = std::vector<std::string>;

namespace {

// Each function twice: while memory is short, and after.
const char* const kActions[] = {"run", "run-k0", "prepare", "plan", "callback"};

int asked(const std::string& action) {
  const Lines lines = probe(DriverChoice::idle, "refuse-from=1000000 " + action + " refused");
  int count = -1;
  REQUIRE(starting_with(lines, "asked ").size() == 1);
  REQUIRE(sscanf(starting_with(lines, "asked ")[0].c_str(), "asked %d", &count) == 1);
  return count;
}

void check_answer(const std::string& answer) {
  INFO(answer);
  const bool no_driver = contains(answer, "NVFP4_STATUS_NO_DRIVER: libcuda.so.1 cannot be opened");
  const bool no_memory = contains(answer, "NVFP4_STATUS_OUT_OF_MEMORY: no ");
  CHECK((no_driver || no_memory || answer == "NVFP4_SUCCESS: "));
}

}  // namespace

TEST_CASE("Every allocation fails in turn: a status and the next call works") {
  for (const std::string action : kActions) {
    const int count = asked(action);
    CAPTURE(action, count);
    CHECK(count > 0);
    int refusals = 0;
    for (int n = 1; n <= count; ++n) {
      CAPTURE(n);
      const std::string once = "refuse=" + std::to_string(n) + " " + action + " " + action;
      const Lines answers = starting_with(probe(DriverChoice::idle, once), "NVFP4_");
      REQUIRE(answers.size() == 2);
      check_answer(answers[0]);
      CHECK(answers[1] == "NVFP4_SUCCESS: ");
      refusals += answers[0] != answers[1];

      const std::string from =
          "refuse-from=" + std::to_string(n) + " " + action + " " + "refuse-from=0 " + action;
      const Lines then = starting_with(probe(DriverChoice::idle, from), "NVFP4_");
      REQUIRE(then.size() == 2);
      check_answer(then[0]);
      CHECK(then[0] != "NVFP4_SUCCESS: ");
      CHECK(then[1] == "NVFP4_SUCCESS: ");
    }
    CHECK(refusals > 0);
  }
}

TEST_CASE(
    "A run that is ready allocates nothing at all and so do plans and questions and refusals") {
  const Lines lines = probe(
      DriverChoice::idle,
      "run plan refuse-from=1 run run-pdl1 run-k0 run-empty plan-run plan-d plan-all plan-bad "
      "prepare refused");
  CHECK(starting_with(lines, "asked ") == Lines{"asked 0"});
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 2 + 4 + 3 + 1);
}

TEST_CASE("A hundred thousand plans that are made and run and destroyed leave nothing behind") {
  const Lines lines = probe(DriverChoice::idle, "churn");
  REQUIRE(lines.size() == 1);
  long kib = -1;
  REQUIRE(sscanf(lines[0].c_str(), "grown by %ld KiB", &kib) == 1);
  CHECK(kib < 512);  // one plan of each hundred would be more, and pages of libc are less
}
