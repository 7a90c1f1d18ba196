// SPDX-License-Identifier: MIT
// See session.h. NVFP4_CATCH_MAIN is the main of a Catch2 that somebody has compiled; without it
// this source compiles Catch2 2.13.
#ifdef NVFP4_CATCH_MAIN
#define CATCH_CONFIG_EXTERNAL_INTERFACES
extern "C" int NVFP4_CATCH_MAIN(int argc, char** argv);
#else
#define CATCH_CONFIG_RUNNER
#endif
#include "tools/testing/session.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/testing/catch.h"
#include "tools/testing/left_out.h"

namespace {

struct Tally {
  unsigned long passed = 0, failed = 0, skipped = 0, others = 0;  // others: left out
  std::string name, skip_reason;
  bool skipping = false, left_out = false;
  bool run_ended = false;  // no run: --help
  bool filtered = false;   // by name or tag

  bool executed_none() const { return run_ended && passed + failed + skipped == 0; }
};
Tally tally;

// Processor seconds of this process, and of the children that it waited for.
double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    getrusage(who, &use);
    sum += static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec);
    sum += 1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  }
  return sum;
}

// What a test costs whatever else the machine does: a line for each in the file NVFP4_TIMES.
void note_time(double seconds) {
  const char* path = std::getenv("NVFP4_TIMES");
  FILE* out = path ? std::fopen(path, "a") : nullptr;
  if (!out) return;
  std::fprintf(out, "%8.2f %s\n", seconds, tally.name.c_str());
  std::fclose(out);
}

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct Counter : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    tally.name = info.name;
    tally.skipping = tally.left_out = false;
    began = cpu_seconds();
  }

  // A failed test case counts as failed even if it asked to be skipped later on.
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    note_time(cpu_seconds() - began);
    if (stats.totals.testCases.failed > 0) {
      ++tally.failed;
    } else if (tally.left_out) {
      ++tally.others;
    } else if (tally.skipping) {
      ++tally.skipped;
      std::printf("skipped: %s: %s\n", tally.name.c_str(), tally.skip_reason.c_str());
    } else {
      ++tally.passed;
    }
  }

  void testRunEnded(const Catch::TestRunStats&) override {
    tally.run_ended = true;
    tally.filtered = m_config->hasTestFilters();
  }

  double began = 0;
};
CATCH_REGISTER_LISTENER(Counter)

// The status of the program, from that of Catch2, which is the number of failed assertions.
int status_of(int result) {
  if (!tally.executed_none()) return result == 0 ? 0 : 1;
  if (tally.others == 0) {
    std::fprintf(stderr, "no test has such a name or tag\n");
    return 1;
  }
  std::fprintf(stderr, "no test was executed: all of them are left out on this device\n");
  return tally.filtered ? support::kExecutedNone : 0;
}

}  // namespace

void support::note_skip(const std::string& reason) {
  tally.skipping = true;
  tally.skip_reason = reason;
}

void support::leave_out() { tally.left_out = true; }

int support::run_tests(int argc, char** argv) {
#ifdef NVFP4_CATCH_MAIN
  const int result = NVFP4_CATCH_MAIN(argc, argv);
#else
  const int result = Catch::Session().run(argc, argv);
#endif
  const char* path = std::getenv("NVFP4_TALLY");
  FILE* out = path ? std::fopen(path, "a") : stdout;
  if (!out) {
    std::fprintf(stderr, "cannot write the tally to %s\n", path);
    return 1;
  }
  if (tally.others > 0) std::printf("%lu left out on this device\n", tally.others);
  std::fprintf(out, "%lu passed, %lu failed, %lu skipped\n", tally.passed, tally.failed,
               tally.skipped);
  if (out != stdout) std::fclose(out);
  return status_of(result);
}
