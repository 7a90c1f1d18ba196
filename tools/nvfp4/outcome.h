// SPDX-License-Identifier: MIT
// What `nvfp4 run` reports about every problem, whatever its fields.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/output_files.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

struct Outcome {
  support::Shape shape{};
  float alpha = 1;
  CallNames names;
  nvfp4_plan_info plan{};  // epilogue and speed-of-light bound
  int64_t equal = 0, total = 0;
  const char* unit = "elements";  // of D, what `equal` and `total` count
  bool exact = true;              // every partial sum is, so all of D must be equal
  double wall_seconds = 0;
  double device_seconds = 0;  // 0 in the emulator
  std::string first;          // the first difference; "" if the result is right
  std::vector<std::string> notes;
  std::function<void(Report&)> more;  // lines that only some problems have

  bool right() const { return first.empty(); }
};

// "12.34 us, 56 % of that bound", or the emulator's wall clock.
std::string duration(double wall_seconds, double device_seconds, double light_us);
const char* time_legend(const support::DeviceInfo& device);

// Computes one product under --trace and --counters, writes the files and reports it. `compute` may
// add files.
int run_and_report(const RunOptions& options, const support::Driver& driver,
                   const support::DeviceInfo& device,
                   const std::function<Outcome(OutputFiles&)>& compute);

// Options of the epilogue, and --groups: each runs the problem and compares D with the reference's
// bits. They refuse sums that are not exact.
Outcome run_general(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device);
Outcome run_grouped(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device);

// --headline: the three shapes of the GPU MODE nvfp4_gemm task, a row each.
int headline(const RunOptions& options, const support::Driver& driver,
             const support::DeviceInfo& device);

}  // namespace nvfp4_tool
