// SPDX-License-Identifier: MIT
// The library's one environment variable, which is read once, and the callback that can replace it.
#include "host/base/log.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host/base/text.h"

namespace nvfp4 {

namespace {

constexpr int32_t kUnread = -1;
int32_t level_of_process = kUnread;

// secure_getenv, so that a set-user-id program does not write where its caller asks. An invalid
// level counts as 0.
int32_t read_level() {
  const char* text = secure_getenv("NVFP4_LOG");
  const bool valid = text != nullptr && text[0] >= '0' && text[0] <= '3' && text[1] == '\0';
  return valid ? text[0] - '0' : 0;
}

// Threads that race here read the same text and store the same number.
int32_t level_of_environment() {
  int32_t known = __atomic_load_n(&level_of_process, __ATOMIC_RELAXED);
  if (known == kUnread) {
    known = read_level();
    __atomic_store_n(&level_of_process, known, __ATOMIC_RELAXED);
  }
  return known;
}

// Destination of lines instead of stderr. A sink is immutable and never freed: another thread may
// be about to call it, and a lock could be held in a forked child. Each sink keeps its predecessor
// reachable for leak checkers.
struct Sink {
  nvfp4_log_callback callback;  // NULL: stderr, by NVFP4_LOG
  void* user;
  int32_t level;
  const Sink* previous;
};
const Sink* sink_of_process;  // NULL: none was ever set

const Sink* current_sink() {
  const Sink* sink = __atomic_load_n(&sink_of_process, __ATOMIC_ACQUIRE);
  return sink != nullptr && sink->callback != nullptr ? sink : nullptr;
}

int32_t level(const Sink* sink) { return sink != nullptr ? sink->level : level_of_environment(); }

__thread bool in_callback;            // set while this thread runs the callback
__thread LinesAfterRelease* waiting;  // where this thread's lines wait; NULL: written at once

// If a callback calls the library, that changes neither the outer call's last error nor its log
// lines; otherwise the callback would enter itself without end.
void write_line(LogLevel wanted, const char* text) {
  const Sink* sink = current_sink();
  if (level(sink) < static_cast<int32_t>(wanted)) return;
  if (sink == nullptr) {
    fprintf(stderr, "nvfp4: %s\n", text);
    return;
  }
  const KeptError kept;
  in_callback = true;
  sink->callback(sink->user, static_cast<int32_t>(wanted), text);
  in_callback = false;
}

}  // namespace

bool logs(LogLevel wanted) {
  return !in_callback && level(current_sink()) >= static_cast<int32_t>(wanted);
}

void log_line(LogLevel wanted, const char* format, ...) {
  if (!logs(wanted)) return;
  char text[kLineBytes];
  va_list arguments;
  va_start(arguments, format);
  write_text(text, sizeof text, format, arguments);
  va_end(arguments);
  if (waiting != nullptr) {
    waiting->keep(wanted, text);
  } else {
    write_line(wanted, text);
  }
}

LinesAfterRelease::LinesAfterRelease() { waiting = this; }

LinesAfterRelease::~LinesAfterRelease() {
  waiting = nullptr;
  for (size_t at = 0; at < length_; at += strlen(lines_ + at + 1) + 2) {
    write_line(static_cast<LogLevel>(lines_[at]), lines_ + at + 1);
  }
}

void LinesAfterRelease::keep(LogLevel level, const char* line) {
  if (length_ + 2 >= sizeof lines_) return;
  lines_[length_] = static_cast<char>(level);
  const size_t room = sizeof lines_ - length_ - 1;
  snprintf(lines_ + length_ + 1, room, "%s", line);
  length_ += strlen(lines_ + length_ + 1) + 2;
}

nvfp4_status set_log_callback(nvfp4_log_callback callback, void* user, int32_t level) {
  constexpr int32_t kMost = static_cast<int32_t>(LogLevel::detail);
  if (level < 0 || level > kMost) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "level = %" PRId32 " is outside 0 to %" PRId32, level,
                kMost);
  }
  Sink* sink = static_cast<Sink*>(malloc(sizeof(Sink)));
  if (sink == nullptr) {
    return fail(NVFP4_STATUS_OUT_OF_MEMORY, "no %zu bytes of host memory for a callback",
                sizeof(Sink));
  }
  *sink = {callback, user, level, __atomic_load_n(&sink_of_process, __ATOMIC_ACQUIRE)};
  while (!__atomic_compare_exchange_n(&sink_of_process, &sink->previous, sink, false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
