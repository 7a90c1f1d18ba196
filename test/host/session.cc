// SPDX-License-Identifier: MIT
// What a test program answers to whoever picks tests by name (tools/testing/session.h).
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

#include "tools/testing/catch.h"
#include "tools/testing/left_out.h"
#include "tools/testing/session.h"

namespace {

// The exit status of this program with these arguments. What it counts is no part of our tally.
int status_of(const std::string& arguments) {
  char path[PATH_MAX] = "";
  REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
  const char* launcher = getenv("NVFP4_TEST_LAUNCHER");
  const std::string command = "NVFP4_TALLY=/dev/null NVFP4_TIMES=/dev/null " +
                              std::string(launcher ? launcher : "") + " '" + path + "' " +
                              arguments + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("A run whose filter fits no test fails") {
  CHECK(status_of("'no such test'") != 0);
  CHECK(status_of("'[no such tag]'") != 0);
  CHECK(status_of("'quantiles are samples whatever their order'") == 0);
  CHECK(status_of("--help") == 0);
}

// Hidden, so that only the test below runs them.
TEST_CASE("a test of another device", "[.another_device]") { support::leave_out(); }
TEST_CASE("a test of another device that fails", "[.fails_on_another_device]") {
  support::leave_out();
  FAIL();
}
TEST_CASE("as many assertions fail as the status of a run that executed no test",
          "[.fails_as_often]") {
  for (int i = 0; i < support::kExecutedNone; ++i) CHECK(i < 0);
}

TEST_CASE("A run by name or tag whose tests are all left out fails by a status of its own") {
  CHECK(status_of("'[another_device]'") == support::kExecutedNone);
  CHECK(status_of("'a test of another device'") == support::kExecutedNone);
  CHECK(status_of("'[another_device],quantiles are samples whatever their order'") == 0);
  CHECK(status_of("'[fails_on_another_device]'") == 1);
  CHECK(status_of("'[another_device],[fails_on_another_device]'") == 1);
  CHECK(status_of("'[fails_as_often]'") == 1);
}
