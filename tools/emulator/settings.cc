// SPDX-License-Identifier: MIT
// Reads the EMU_* settings.
#include "settings.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emu {

namespace {

// A silently ignored setting would make a reproducing seed useless, so a bad value ends the
// process.
[[noreturn]] void refuse(const char* name, const char* value, const char* wanted) {
  fprintf(stderr, "emulator: %s=%s is not %s\n", name, value, wanted);
  exit(2);
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t largest) {
  const char* text = getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  errno = 0;
  uint64_t value = strtoull(text, &end, 0);
  if (*text == '-' || *end || errno || value > largest) refuse(name, text, "a number in its range");
  return value;
}

Order order() {
  const char* text = getenv("EMU_ORDER");
  if (!text || !*text || !strcmp(text, "random")) return Order::random;
  if (!strcmp(text, "soonest")) return Order::soonest;
  if (!strcmp(text, "latest")) return Order::latest;
  refuse("EMU_ORDER", text, "soonest, latest or random");
}

Settings read() {
  Settings s;
  if (const char* device = getenv("EMU_DEVICE"); device && *device) s.device = device;
  s.driver_version = uint32_t(number("EMU_DRIVER_VERSION", s.driver_version, 99990));
  s.order = order();
  s.seed = number("EMU_SEED", s.seed, ~0ull);
  s.workers = uint32_t(number("EMU_WORKERS", s.workers, 1024));
  s.max_instructions = number("EMU_MAX_INSTRUCTIONS", s.max_instructions, ~0ull);
  s.zero_group_raises = number("EMU_MMA_ZERO_GROUP", s.zero_group_raises, 1) != 0;
  return s;
}

}  // namespace

Settings& settings() {
  static Settings values = read();
  return values;
}

}  // namespace emu
