// SPDX-License-Identifier: MIT
// One problem on the device, timed and judged.
#pragma once

#include <string>
#include <vector>

#include "tools/harness/compare.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/call_log.h"

namespace nvfp4_tool {

struct Verified {
  CallNames names;
  std::vector<uint16_t> d;
  bool exact = false;  // every partial sum is exact, so the verdict is equality of bits
  support::BitVerdict bits;
  support::BoundVerdict bound;  // filled where `exact` is false
  double wall_seconds = 0;      // of the launch until D was there
  double device_seconds = 0;    // median by events with cold caches; 0 in the emulator
  double light_percent = 0;     // of the speed of light, 0 if unknown for this device

  bool passed() const { return exact ? bits.passed() : bound.passed(); }
  std::string complaint() const;  // "" if passed
};

// Throws std::runtime_error with a sentence where the library or the driver refuses.
Verified verify(const support::Driver& driver, const support::DeviceInfo& device,
                const support::Problem& problem);

}  // namespace nvfp4_tool
