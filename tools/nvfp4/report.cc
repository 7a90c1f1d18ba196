// SPDX-License-Identifier: MIT
#include "tools/nvfp4/report.h"

#include <cstdarg>
#include <cstdio>

namespace nvfp4_tool {

void Report::line(const char* key, const char* format, ...) {
  if (as_json_) return;
  std::printf("%-9s ", key);
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
}

void Report::finish() {
  // File names and driver texts may be invalid UTF-8; such bytes are replaced.
  const auto replace = Json::error_handler_t::replace;
  if (as_json_) std::printf("%s\n", values_.dump(2, ' ', false, replace).c_str());
}

}  // namespace nvfp4_tool
