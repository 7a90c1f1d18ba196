// SPDX-License-Identifier: MIT
#include "tools/harness/progress.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <mutex>

namespace support {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kEvery = 0.1, kFirst = 0.5;  // seconds between lines; until a forecast is worth it

bool on_terminal() {
  static const bool terminal = isatty(STDERR_FILENO);
  return terminal;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Task {
  std::string text;
  Clock::time_point start = Clock::now();
  double last = 0;
  std::mutex mutex;

  void show(double part) {
    const std::lock_guard lock(mutex);
    const double now = seconds_since(start);
    if (now < last + kEvery || part <= 0) return;
    last = now;
    char line[64];
    std::snprintf(line, sizeof line, " %.0f %%", 100 * part);
    std::string shown = text + line;
    if (now >= kFirst) {
      std::snprintf(line, sizeof line, ", %.0f s left", std::ceil(now * (1 - part) / part));
      shown += line;
    }
    progress(shown);
  }
};

}  // namespace

void progress(const std::string& text) {
  if (on_terminal()) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

void progress_done() { progress(""); }

std::function<void(double)> progress_of(const std::string& text) {
  progress(text);
  if (!on_terminal()) return {};
  const auto task = std::make_shared<Task>();
  task->text = text;
  return [task](double part) { task->show(part); };
}

}  // namespace support
