// SPDX-License-Identifier: MIT
// The one environment variable of the library, read once.
#include "host/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace nvfp4 {

namespace {

constexpr int32_t kUnread = -1;
int32_t level_of_process = kUnread;

// secure_getenv: a set-user-id program does not write where its caller asks. What is no level is 0.
int32_t read_level() {
  const char* text = secure_getenv("NVFP4_LOG");
  const bool valid = text != nullptr && text[0] >= '0' && text[0] <= '3' && text[1] == '\0';
  return valid ? text[0] - '0' : 0;
}

// Threads that race here read the same text and store the same number.
int32_t level() {
  int32_t known = __atomic_load_n(&level_of_process, __ATOMIC_RELAXED);
  if (known == kUnread) {
    known = read_level();
    __atomic_store_n(&level_of_process, known, __ATOMIC_RELAXED);
  }
  return known;
}

}  // namespace

void log_line(LogLevel wanted, const char* format, ...) {
  if (level() < static_cast<int32_t>(wanted)) return;
  char text[2200];  // the longest sentence of status.cc and a prefix
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "nvfp4: %s\n", text);
}

}  // namespace nvfp4
