// SPDX-License-Identifier: MIT
// Runs PTX text on the machine, without a driver: one entry `k` with a pointer to a buffer of
// words.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/machine.h"
#include "tools/testing/catch.h"

namespace exec_test {

struct Shape {
  emu::Dim3 grid{}, block{}, cluster{};
  uint32_t dynamic_shared_bytes = 0;
  uint32_t sm_count = 148;
  const char* target = "sm_100a";  // of run(): its number is the device's, too
  bool cooperative = false;
};

// A kernel body becomes a module. `declarations` stands at module scope.
std::string kernel(const std::string& body, const std::string& declarations = "");

// Runs the body and returns the buffer. The body finds the buffer's address in %out.
std::vector<uint32_t> run(const std::string& body, const Shape& shape, std::vector<uint32_t> buffer,
                          const std::string& declarations = "");

// The counters of the same, with a buffer of so many words.
emu::Counters counters(const std::string& body, const Shape& shape,
                       const std::string& declarations = "", uint32_t words = 64);

// The report of the fault that the body ends with; fails the test when there is none.
std::string fault(const std::string& body, const Shape& shape = {}, emu::FaultKind* kind = nullptr,
                  const std::string& declarations = "");

// One instruction in one thread: registers d, a, b, c, e of the widths given, a.. hold the values.
// Returns d.
struct Widths {
  uint32_t d = 32, a = 32, b = 32, c = 32, e = 32;
};
uint64_t eval(const std::string& instruction, std::initializer_list<uint64_t> values,
              const Widths& widths = {});

// Restores the process-wide settings at the end of a test.
struct SettingsGuard {
  emu::Settings saved = emu::settings();
  ~SettingsGuard() { emu::settings() = saved; }
};

bool contains(const std::string& text, const std::string& part);

}  // namespace exec_test

// What nearly every test that includes this names.
using exec_test::contains;
using exec_test::eval;
using exec_test::fault;
using exec_test::run;
