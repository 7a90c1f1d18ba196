// SPDX-License-Identifier: MIT
// What `nvfp4 run` requests from an emulator, a time line and counters of the launch; and
// `nvfp4 --emulate`.
#pragma once

#include <string>

#include "tools/harness/driver.h"
#include "tools/nvfp4/output_files.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

// Throws UsageError naming `option` if the driver is a GPU's.
void require_emulator(const support::Driver& driver, const char* option);

// Writes every launch from here on to the file, which appears when `files` is committed.
class Trace {
 public:
  Trace(const support::Driver& driver, OutputFiles& files, const std::string& path);
  void require_events() const;  // throws std::runtime_error if there are none

 private:
  std::string path_, beside_;
};

// The counters of the last launch that are not zero, one per line, with their meaning.
void report_counters(const support::Driver& driver, Report& report);

// Runs the same command again with the emulator as the driver: replaces this process with the
// program, the arguments after argv[1], and the emulator ahead of every other driver. If that fails
// it prints a message and returns the exit code.
int emulate(char** argv);

}  // namespace nvfp4_tool
