// SPDX-License-Identifier: MIT
// What the library logs, as the user of the command line wants to see it.
#pragma once

#include <string>

namespace nvfp4_tool {

struct CallNames {
  std::string image = "?", variant = "?";
};

// Takes over the library's log: NVFP4_LOG's lines go to stderr, but for errors, which the program
// reports itself. Says so where NVFP4_LOG is no level.
void watch_log();

// Image and variant of the last call, from the line that the library logs about it. No function
// says which image ran: nvfp4_plan_info has the one that is tried first, and the driver may refuse
// that. Lines of the log may change, so test_cli_verdict.py compares both names with known ones.
CallNames last_call();

}  // namespace nvfp4_tool
