// SPDX-License-Identifier: MIT
// Runs one problem on the device, times and judges it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/harness/compare.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/call_log.h"

namespace nvfp4_tool {

// Number of elements of D that are no ordinary number.
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
  double wall_seconds = 0;                // from the launch until D is complete
  double device_seconds = 0;              // median by events with cold caches; 0 in the emulator
  double device_p10 = 0, device_p90 = 0;  // percentiles of the same runs
  nvfp4_plan_info plan{};
  double light_us = 0;     // the speed-of-light bound
  const char* limit = "";  // what sets it: "memory" or "math"

  // What the header promises: equal bits if sums are exact, otherwise within its bound.
  bool kept() const { return exact ? bits.equal == bits.total : bound.outside_bound == 0; }
  // The same on data that prove something: D is mostly not zero, and also close to the reference.
  bool passed() const { return exact ? bits.passed() : bound.passed(); }
  std::string complaint() const;  // why not, "" if passed
  // What a reader should know about a correct result: "D has 4 infinities ...".
  std::vector<std::string> notes() const;
  double light_percent() const { return device_seconds > 0 ? 1e-4 * light_us / device_seconds : 0; }
};

// Throws std::runtime_error with a message if the library or the driver refuses.
Verified verify(const support::Driver& driver, const support::DeviceInfo& device,
                const support::Problem& problem);

// Seconds of kTimedRuns runs of the work that `enqueue` puts on the default stream, with cold
// caches.
struct Times {
  double median, p10, p90;
};
Times time_on_device(const support::Driver& driver, const std::function<void()>& enqueue);

}  // namespace nvfp4_tool
