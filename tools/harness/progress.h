// SPDX-License-Identifier: MIT
// What is going on, on a terminal: one line on stderr that the next one replaces.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace support {

inline void progress(const std::string& text) {
  static const bool terminal = isatty(STDERR_FILENO);
  if (terminal) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

inline void progress_done() { progress(""); }

}  // namespace support
