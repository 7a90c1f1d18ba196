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

template <class T>
T word(const char* name, T otherwise, const char* wanted) {
  const char* text = getenv(name);
  if (!text || !*text) return otherwise;
  if (!parse(text, &otherwise)) refuse(name, text, wanted);
  return otherwise;
}

Settings read() {
  Settings s;
  if (const char* device = getenv("EMU_DEVICE"); device && *device) s.device = device;
  s.driver_version = uint32_t(number("EMU_DRIVER_VERSION", s.driver_version, 99990));
  s.order = word("EMU_ORDER", s.order, "soonest, latest or random");
  s.seed = number("EMU_SEED", s.seed, ~0ull);
  s.workers = uint32_t(number("EMU_WORKERS", s.workers, 1024));
  s.max_instructions = number("EMU_MAX_INSTRUCTIONS", s.max_instructions, ~0ull);
  s.zero_group_raises = number("EMU_MMA_ZERO_GROUP", s.zero_group_raises, 1) != 0;
  s.hazards = word("EMU_HAZARDS", s.hazards, "stop, report or ignore");
  s.formal = word("EMU_FORMAL", s.formal, "stop, report or ignore");
  return s;
}

}  // namespace

bool parse(const char* text, Order* order) {
  if (!strcmp(text, "soonest")) return *order = Order::soonest, true;
  if (!strcmp(text, "latest")) return *order = Order::latest, true;
  if (!strcmp(text, "random")) return *order = Order::random, true;
  return false;
}

bool parse(const char* text, Reaction* reaction) {
  if (!strcmp(text, "stop")) return *reaction = Reaction::stop, true;
  if (!strcmp(text, "report")) return *reaction = Reaction::report, true;
  if (!strcmp(text, "ignore")) return *reaction = Reaction::ignore, true;
  return false;
}

Settings& settings() {
  static Settings values = read();
  return values;
}

}  // namespace emu
