// SPDX-License-Identifier: MIT
#include "tools/nvfp4/call_log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace nvfp4_tool {

namespace {

bool user_wants_log = false;

// stderr goes to an unlinked temporary file while this lives: unlike a pipe, it cannot fill up.
class CaughtStderr {
 public:
  CaughtStderr() : file_(std::tmpfile()), saved_(dup(STDERR_FILENO)) {
    if (!file_ || saved_ < 0) throw std::runtime_error("cannot open a temporary file");
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~CaughtStderr() {
    restore();
    close(saved_);
    std::fclose(file_);
  }
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  std::string text() {
    restore();
    std::string all;
    char buffer[4096];
    std::rewind(file_);
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file_)) > 0;) all.append(buffer, n);
    return all;
  }

 private:
  void restore() {
    std::fflush(stderr);
    dup2(saved_, STDERR_FILENO);
  }
  FILE* file_;
  int saved_;
};

std::string after(const std::string& line, const std::string& key, char end) {
  const size_t at = line.find(key);
  if (at == std::string::npos) return "?";
  const size_t first = at + key.size();
  return line.substr(first, line.find(end, first) - first);
}

}  // namespace

void enable_call_log() {
  const char* level = std::getenv("NVFP4_LOG");
  user_wants_log = level && std::atoi(level) >= 2;
  if (!user_wants_log) setenv("NVFP4_LOG", "2", 1);
}

CallNames catch_call_log(const std::function<void()>& call) {
  CallNames names;
  CaughtStderr caught;
  call();
  std::istringstream lines(caught.text());
  for (std::string line; std::getline(lines, line);) {
    const bool ours = line.rfind("nvfp4: gemm ", 0) == 0;
    if (ours) names = {after(line, "image=\"", '"'), after(line, "variant=", ' ')};
    if (user_wants_log || !ours) std::fprintf(stderr, "%s\n", line.c_str());
  }
  return names;
}

}  // namespace nvfp4_tool
