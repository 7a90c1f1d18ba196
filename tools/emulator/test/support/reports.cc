// SPDX-License-Identifier: MIT
// The emulator's reports stay out of the log of the tests that expect them: those of a test case
// are shown when it fails.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <cstdio>
#include <mutex>
#include <string>

#include "tools/emulator/base/tell.h"
#include "tools/testing/catch.h"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

std::mutex lock;
std::string told;

struct Reports : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override {
    told.clear();
    emu::set_listener([](const std::string& report) {
      std::lock_guard guard(lock);
      told += "emulator: " + report + "\n";
    });
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    emu::set_listener(nullptr);
    if (stats.totals.testCases.failed > 0) fputs(told.c_str(), stderr);
  }
};
CATCH_REGISTER_LISTENER(Reports)

}  // namespace
