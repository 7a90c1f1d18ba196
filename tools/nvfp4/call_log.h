// SPDX-License-Identifier: MIT
// The library's log, as the command line shows it.
#pragma once

#include <string>

namespace nvfp4_tool {

struct CallNames {
  std::string image, variant;
};

// Takes over the library's log. Lines at NVFP4_LOG's level go to stderr, except errors, which the
// program reports itself. Complains if NVFP4_LOG is no level.
void watch_log();

// Image and variant of the last call, from two fields that the header promises of the line which
// the library logs about it. No function says which image ran: nvfp4_plan_info has the one that is
// tried first, and the driver may refuse that. Throws std::logic_error where no line had them.
CallNames last_call();

}  // namespace nvfp4_tool
