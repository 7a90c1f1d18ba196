// SPDX-License-Identifier: MIT
// Lines to stderr by NVFP4_LOG=0..3, or to the program's callback. Off is two loads and a
// comparison.
#pragma once

#include "host/status.h"

namespace nvfp4 {

enum class LogLevel : int32_t { silent = 0, error = 1, call = 2, detail = 3 };

// Whether a line of that level goes anywhere.
bool logs(LogLevel level);

// On stderr one line "nvfp4: ...", written by a single call so that lines of threads do not mix; a
// callback gets it without prefix and newline.
__attribute__((format(printf, 2, 3))) void log_line(LogLevel level, const char* format, ...);

nvfp4_status set_log_callback(nvfp4_log_callback callback, void* user, int32_t level);

}  // namespace nvfp4
