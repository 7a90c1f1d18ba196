// SPDX-License-Identifier: MIT
// The EMU_* settings: the rows of settings.def as values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

// When asynchronous work (bulk copies, MMAs, commits) takes effect.
enum class Order : uint8_t {
  soonest,  // at once
  latest,   // only when no warp of the cluster can go on
  random,   // somewhere between, drawn from the seed
};

// What a finding of the ordering checks does (findings.h).
enum class Reaction : uint8_t {
  stop,    // the launch ends with an error status
  report,  // told on stderr once per pair of places, and counted
  ignore,
};

// How the tensor core adds block-scaled products (arithmetic/mma_block_scaled.h).
enum class MmaModel : uint8_t { groups, blocks };

// Assumptions about how untested hardware reads scales: EMU_SCALE_BANDS, EMU_PAIR_SCALES.
enum class ScaleBands : uint8_t { equal, first, own };
enum class PairScales : uint8_t { halves, whole };

// Blocks by their number in the grid, x fastest.
struct Blocks {
  uint64_t first = 0, last = 3;
  bool holds(uint64_t block) const { return first <= block && block <= last; }
};

// Late warps: they run only while no other warp of their cluster can.
struct Late {
  uint32_t first = 1, last = 0;  // numbers of the warps in the CTA; none if last < first
  uint32_t rank = any_rank;      // the CTA's rank in its cluster
  // The seed draws one warp or four neighbours for each cluster, and others from time to time.
  bool by_seed = false;
  static constexpr uint32_t any_rank = ~0u;
  bool holds(uint32_t cta, uint32_t warp) const {
    return first <= warp && warp <= last && (rank == any_rank || rank == cta);
  }
};

struct Settings {
#define EMU_SETTING(name, type, field, value, largest, when, meaning) type field = value;
#include "tools/emulator/base/settings.def"
#undef EMU_SETTING
};

struct SettingRow {
  const char *name, *meaning;
  bool per_launch;                                // may change between launches
  bool (*set)(Settings& to, const char* text);    // false: not a value of it; nothing changes
  std::string (*show)(const Settings& settings);  // as set() reads it
  std::string (*wanted)();                        // what set() takes, in words
};
const std::vector<SettingRow>& setting_rows();
const SettingRow* find_setting(const std::string& name);  // nullptr: there is none

// Reads the settings of `environment` ("NAME=value", ended by nullptr). On a bad value *error gets
// one sentence. If there is an EMU_ name that is no setting, *warning gets one sentence; this is no
// error, since the name may belong to the program.
Settings read_settings(const char* const* environment, std::string* error, std::string* warning);

// The process's. The first call reads the environment, and ends the process with a sentence if a
// value is wrong.
Settings& settings();

}  // namespace emu
