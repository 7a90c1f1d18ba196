// SPDX-License-Identifier: MIT
// Names and sentences of the statuses; the last error of each thread.
#include "host/base/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "host/base/log.h"
#include "host/base/text.h"

namespace nvfp4 {

namespace {

#define STATUS(name, value, sentence) \
  static_assert(NVFP4_##name == (value), "numbers are pinned: a released one never changes");
#include "host/base/status.def"
#undef STATUS

// Fixed size and thread-local: an error path that allocates is one more thing that can fail.
__thread char error_of_thread[kErrorBytes];

}  // namespace

nvfp4_status fail(nvfp4_status status, const char* format, ...) {
  // The new message is built beside the old one, which may be among the arguments.
  char text[kErrorBytes];
  va_list arguments;
  va_start(arguments, format);
  write_text(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(error_of_thread, sizeof error_of_thread, "%s", text);
  log_line(LogLevel::error, "%s: %s", status_name(status), text);
  return status;
}

const char* last_error() { return error_of_thread; }

KeptError::KeptError() { memcpy(text_, error_of_thread, sizeof text_); }
KeptError::~KeptError() { memcpy(error_of_thread, text_, sizeof text_); }

const char* status_name(nvfp4_status status) {
  switch (status) {
#define STATUS(name, value, sentence) \
  case value:                         \
    return "NVFP4_" #name;
#include "host/base/status.def"
#undef STATUS
  }
  return "NVFP4_STATUS_UNKNOWN";
}

const char* status_sentence(nvfp4_status status) {
  switch (status) {
#define STATUS(name, value, sentence) \
  case value:                         \
    return sentence;
#include "host/base/status.def"
#undef STATUS
  }
  return "No status of this library has this number.";
}

}  // namespace nvfp4
