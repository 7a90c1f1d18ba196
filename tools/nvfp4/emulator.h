// SPDX-License-Identifier: MIT
// What `nvfp4 run` asks of an emulator: a time line and counters of the launch.
#pragma once

#include <string>

#include "tools/harness/driver.h"

namespace nvfp4_tool {

// Throws UsageError naming `option` when the driver is a GPU's.
void require_emulator(const support::Driver& driver, const char* option);
// Every launch from here on goes into the file.
void trace_to(const support::Driver& driver, const std::string& path);
// The counters of the last launch that are not zero, one per line, with their meaning.
void print_counters(const support::Driver& driver);

}  // namespace nvfp4_tool
