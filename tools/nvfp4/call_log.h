// SPDX-License-Identifier: MIT
// Which image and variant a call used, from the line that the library logs at NVFP4_LOG=2.
#pragma once

#include <functional>
#include <string>

namespace nvfp4_tool {

struct CallNames {
  std::string image = "?", variant = "?";
};

// Turns the library's log on. Before the first call of the library, which reads the variable once.
void enable_call_log();

// Runs `call` with stderr caught, then passes on what the user would have seen without us.
CallNames catch_call_log(const std::function<void()>& call);

}  // namespace nvfp4_tool
