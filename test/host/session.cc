// SPDX-License-Identifier: MIT
// What a test program answers to whoever picks tests by name (tools/testing/session.h).
#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

#include "tools/testing/catch.h"

namespace {

// The exit status of this program with these arguments. What it counts is no part of our tally.
int status_of(const std::string& arguments) {
  char path[PATH_MAX] = "";
  REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
  const char* launcher = getenv("NVFP4_TEST_LAUNCHER");
  const std::string command = "NVFP4_TALLY=/dev/null NVFP4_TIMES=/dev/null " +
                              std::string(launcher ? launcher : "") + " '" + path + "' " +
                              arguments + " >/dev/null 2>&1";
  return std::system(command.c_str());
}

}  // namespace

TEST_CASE("A run whose filter fits no test fails") {
  CHECK(status_of("'no such test'") != 0);
  CHECK(status_of("'[no such tag]'") != 0);
  CHECK(status_of("'quantiles are samples whatever their order'") == 0);
  CHECK(status_of("--help") == 0);
}
