// SPDX-License-Identifier: MIT
// What an emulator can be asked beside the driver API.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "nvfp4emu.h"
#include "tools/harness/driver.h"
#include "tools/testing/catch.h"

namespace gemm_test {

// The emulator's own entry points; without them the test is skipped.
struct Emulator {
  decltype(&nvfp4emu_set) set;
  decltype(&nvfp4emu_counters) counters;
  decltype(&nvfp4emu_findings_of) findings_of;
  decltype(&nvfp4emu_calls) calls;
  decltype(&nvfp4emu_reset_calls) reset_calls;

  explicit Emulator(const support::Driver& driver) {
    find(driver, set, "nvfp4emu_set");
    find(driver, counters, "nvfp4emu_counters");
    find(driver, findings_of, "nvfp4emu_findings_of");
    find(driver, calls, "nvfp4emu_calls");
    find(driver, reset_calls, "nvfp4emu_reset_calls");
  }
  bool present() const { return set && counters && findings_of && calls && reset_calls; }

  uint64_t counter(const char* name) const {
    uint64_t value = 0;
    REQUIRE(counters(name, &value) == 0);
    return value;
  }

  // Findings of the last launch that broke that rule.
  uint64_t broken(const char* rule) const {
    uint64_t times = 0;
    REQUIRE(findings_of(rule, &times) == 0);
    return times;
  }

  // The calls since the last reset, one per line.
  std::string recorded() const {
    std::string text(calls(nullptr, 0), '\0');
    calls(text.data(), text.size());
    text.pop_back();  // the NUL
    return text;
  }

 private:
  template <typename Function>
  static void find(const support::Driver& driver, Function& function, const char* name) {
    function = reinterpret_cast<Function>(driver.extension(name));
  }
};

// A setting for the launches of one test; at its end that of the environment is back, or `usual`.
class Setting {
 public:
  Setting(const Emulator& emulator, const char* name, const std::string& value, const char* usual)
      : emulator_(emulator), name_(name), usual_(usual) {
    REQUIRE(emulator.set(name, value.c_str()) == 0);
  }
  ~Setting() {
    const char* const environment = std::getenv(name_);
    emulator_.set(name_, environment ? environment : usual_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const Emulator& emulator_;
  const char *name_, *usual_;
};

// What is written to stderr while `run` runs; the emulator writes its findings there.
template <class Run>
std::string heard(Run run) {
  struct Redirected {
    std::FILE* const file = std::tmpfile();
    const int terminal = dup(STDERR_FILENO);
    Redirected() {
      std::fflush(stderr);
      if (file) dup2(fileno(file), STDERR_FILENO);
    }
    ~Redirected() {
      std::fflush(stderr);
      dup2(terminal, STDERR_FILENO);
      close(terminal);
      if (file) std::fclose(file);
    }
  } redirected;
  REQUIRE(redirected.file);
  run();
  std::fflush(stderr);
  std::string text(size_t(std::ftell(redirected.file)), 0);
  std::rewind(redirected.file);
  text.resize(std::fread(text.data(), 1, text.size(), redirected.file));
  return text;
}

}  // namespace gemm_test

#define USE_EMULATOR(gpu, emulator)                 \
  const gemm_test::Emulator emulator((gpu).driver); \
  if (!(emulator).present()) SKIP_TEST("the driver is no emulator")
