// SPDX-License-Identifier: MIT
// The EMU_* settings: one table, read from the environment once per process.
#pragma once

#include <cstdint>

namespace emu {

// When asynchronous work (bulk copies, MMAs, commits) takes effect.
enum class Order : uint8_t {
  soonest,  // at once
  latest,   // only when no warp of the cluster can go on
  random,   // somewhere between, drawn from the seed
};

// What a finding of the ordering checks does (hazard/findings.h).
enum class Reaction : uint8_t {
  stop,    // the launch ends with an error status
  report,  // told on stderr once per pair of places, and counted
  ignore,
};

// clang-format off
struct Settings {
  const char* device = "B200";      // EMU_DEVICE            a row of driver/devices.def, or none
  uint32_t driver_version = 13000;  // EMU_DRIVER_VERSION    what cuDriverGetVersion answers
  Order order = Order::random;      // EMU_ORDER             soonest, latest, random
  uint64_t seed = 1;                // EMU_SEED
  uint32_t workers = 0;             // EMU_WORKERS           host threads; 0 = one per core
  uint64_t max_instructions = 0;    // EMU_MAX_INSTRUCTIONS  warp instructions per CTA; 0 = 2e8
  bool zero_group_raises = true;    // EMU_MMA_ZERO_GROUP    1: a zero group raises the exponent
  Reaction hazards = Reaction::stop;   // EMU_HAZARDS        stop, report, ignore: missing order
  Reaction formal = Reaction::report;  // EMU_FORMAL         the same: order only the manual wants
};
// clang-format on

// The words of the settings that have words; false: not one of them.
bool parse(const char* text, Order* order);
bool parse(const char* text, Reaction* reaction);

// Throws nothing; a malformed value is reported on stderr and ends the process.
Settings& settings();

}  // namespace emu
