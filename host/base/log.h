// SPDX-License-Identifier: MIT
// Lines to stderr by NVFP4_LOG=0..3, or to the program's callback. With logging off a line costs
// two loads and a comparison.
#pragma once

#include <cstddef>

#include "host/base/status.h"

namespace nvfp4 {

enum class LogLevel : int32_t { silent = 0, error = 1, call = 2, detail = 3 };

// Whether a line of that level is written at all.
bool logs(LogLevel level);

// On stderr a line is "nvfp4: ...", written by a single call so that lines of several threads do
// not mix. A callback gets it without prefix and newline.
__attribute__((format(printf, 2, 3))) void log_line(LogLevel level, const char* format, ...);

constexpr size_t kLineBytes = kErrorBytes + 160;  // the longest message of status.cc and a prefix

// While it exists, this thread's log lines wait in it; its destructor writes them. Declare it
// before taking a resource that other threads wait for, so that it ends after the release: a
// callback may use the library, or wait for a lock whose owner does.
class LinesAfterRelease {
 public:
  LinesAfterRelease();
  ~LinesAfterRelease();
  LinesAfterRelease(const LinesAfterRelease&) = delete;
  LinesAfterRelease& operator=(const LinesAfterRelease&) = delete;

  void keep(LogLevel level, const char* line);

 private:
  // Room for one failure and a line per image tried, stored as [level][line][NUL] one after the
  // other.
  char lines_[kLineBytes + 16 * 128];
  size_t length_ = 0;
};

nvfp4_status set_log_callback(nvfp4_log_callback callback, void* user, int32_t level);

}  // namespace nvfp4
