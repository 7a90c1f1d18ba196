// SPDX-License-Identifier: MIT
#include "tools/nvfp4/call_log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>

#include "nvfp4_gemm.h"

namespace nvfp4_tool {

namespace {

constexpr int kErrors = 1, kCalls = 2;  // levels of NVFP4_LOG

struct Watch {
  int level = 0;  // what the user wants to see
  std::mutex mutex;
  CallNames names;
} watch;

// The value of a field that the header promises; "" if the line has none.
std::string after(const std::string& line, const std::string& key, char end) {
  const size_t at = line.find(key);
  if (at == std::string::npos) return "";
  const size_t first = at + key.size();
  return line.substr(first, line.find(end, first) - first);
}

void on_line(void*, int32_t level, const char* text) {
  const std::string line = text;
  const std::lock_guard lock(watch.mutex);
  const CallNames names = {after(line, " image=\"", '"'), after(line, " variant=", ' ')};
  if (level == kCalls && !names.image.empty()) watch.names = names;
  if (level > kErrors && level <= watch.level) std::fprintf(stderr, "nvfp4: %s\n", text);
}

int level_of_environment() {
  const char* text = std::getenv("NVFP4_LOG");
  if (!text || !*text) return 0;
  if (text[0] >= '0' && text[0] <= '3' && text[1] == '\0') return text[0] - '0';
  std::fprintf(stderr, "nvfp4: NVFP4_LOG=%s is not one of 0, 1, 2 and 3: nothing is logged\n",
               text);
  return 0;
}

}  // namespace

void watch_log() {
  watch.level = level_of_environment();
  nvfp4_set_log_callback(on_line, nullptr, std::max(watch.level, kCalls));
}

CallNames last_call() {
  const std::lock_guard lock(watch.mutex);
  if (!watch.names.image.empty() && !watch.names.variant.empty()) return watch.names;
  throw std::logic_error("the library logged no image and variant of its last call");
}

}  // namespace nvfp4_tool
