// SPDX-License-Identifier: MIT
// One problem on the device, timed and judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/harness/compare.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/call_log.h"

namespace nvfp4_tool {

// How many elements of D are no ordinary number.
struct Oddities {
  int64_t zeros = 0, infinities = 0, nans = 0;
};

constexpr int kTimedRuns = 21;

struct Verified {
  CallNames names;
  std::vector<uint16_t> d;
  bool exact = false;  // every partial sum is exact, so the verdict is equality of bits
  support::BitVerdict bits;
  support::BoundVerdict bound;  // filled where `exact` is false
  Oddities odd;
  double wall_seconds = 0;                // of the launch until D was there
  double device_seconds = 0;              // median by events with cold caches; 0 in the emulator
  double device_p10 = 0, device_p90 = 0;  // percentiles of the same runs
  double light_us = 0;     // the least that the device's memory and tensor cores allow
  const char* limit = "";  // which of them: "memory" or "math"

  // What the header promises: equal bits where sums are exact, else inside its bound.
  bool kept() const { return exact ? bits.equal == bits.total : bound.outside_bound == 0; }
  // On data that prove something: D mostly not zero, and close to the reference besides.
  bool passed() const { return exact ? bits.passed() : bound.passed(); }
  std::string complaint() const;  // why not, "" if passed
  // What a reader should know of a result that is right: "D has 4 infinities ...".
  std::vector<std::string> notes() const;
  double light_percent() const { return device_seconds > 0 ? 1e-4 * light_us / device_seconds : 0; }
};

// Throws std::runtime_error with a sentence where the library or the driver refuses.
Verified verify(const support::Driver& driver, const support::DeviceInfo& device,
                const support::Problem& problem);

// Seconds of kTimedRuns runs of what `enqueue` puts on the default stream, with cold caches.
struct Times {
  double median, p10, p90;
};
Times time_on_device(const support::Driver& driver, const std::function<void()>& enqueue);

}  // namespace nvfp4_tool
