// SPDX-License-Identifier: MIT
// NVFP4_LOG=0..3: lines on stderr. Off is one load and one comparison.
#pragma once

#include <cstdint>

namespace nvfp4 {

enum class LogLevel : int32_t { silent = 0, error = 1, call = 2, detail = 3 };

// One line "nvfp4: ...", written by a single call so that lines of threads do not mix.
__attribute__((format(printf, 2, 3))) void log_line(LogLevel level, const char* format, ...);

}  // namespace nvfp4
