// SPDX-License-Identifier: MIT
// See session.h.
#define CATCH_CONFIG_RUNNER
#include "tools/testing/session.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/testing/catch.h"

namespace {

struct Tally {
  unsigned long passed = 0, failed = 0, skipped = 0;
  std::string name, skip_reason;
  bool skipping = false;
};
Tally tally;

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct Counter : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    tally.name = info.name;
    tally.skipping = false;
  }

  // A failed test case counts as failed even if it asked to be skipped later on.
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.testCases.failed > 0) {
      ++tally.failed;
    } else if (tally.skipping) {
      ++tally.skipped;
      std::printf("skipped: %s: %s\n", tally.name.c_str(), tally.skip_reason.c_str());
    } else {
      ++tally.passed;
    }
  }
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void support::note_skip(const std::string& reason) {
  tally.skipping = true;
  tally.skip_reason = reason;
}

int support::run_tests(int argc, char** argv) {
  const int result = Catch::Session().run(argc, argv);
  const char* path = std::getenv("NVFP4_TALLY");
  FILE* out = path ? std::fopen(path, "a") : stdout;
  if (!out) {
    std::fprintf(stderr, "cannot write the tally to %s\n", path);
    return 1;
  }
  std::fprintf(out, "%lu passed, %lu failed, %lu skipped\n", tally.passed, tally.failed,
               tally.skipped);
  if (out != stdout) std::fclose(out);
  return result;
}
