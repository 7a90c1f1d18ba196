// SPDX-License-Identifier: MIT
// Commands that verify launches of several kinds and then time them in turns: a row of CSV for each
// shape.
#pragma once

#include <functional>

#include "bench/commands.h"
#include "bench/device.h"

namespace bench {

struct Turns {
  const char* series;  // how many there are, in words
  const char* columns;
  std::function<void(const Gpu&, const support::Shape&)> verify;           // alone, in the emulator
  std::function<void(const Gpu&, GpuTimer&, const support::Shape&)> time;  // verifies first
};

// Prints the table, and returns the exit code.
int time_in_turns(const TurnsOptions& options, const Turns& turns);

inline const char* word_of(int32_t a_type) {
  return a_type == NVFP4_TYPE_NONE ? "nvfp4" : a_type == NVFP4_TYPE_F16 ? "f16" : "bf16";
}

}  // namespace bench
