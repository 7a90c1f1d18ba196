// SPDX-License-Identifier: MIT
#include "tools/nvfp4/headline.h"

#include <cstdio>
#include <stdexcept>

#include "nvfp4_gemm.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/memory.h"

namespace nvfp4_tool {

namespace {

// One row: on the task's data all bits must be equal, with random scales errors must stay within
// the bound.
bool headline_row(const support::Shape& shape, const RunOptions& options,
                  const support::Driver& driver, const support::DeviceInfo& device) {
  require_memory(shape, {}, device);
  const auto problem = [&](support::Data data) {
    support::progress(to_string(shape) + ": data");
    return support::make_problem(shape, data, options.seed);
  };
  const Verified task = verify(driver, device, problem(support::Data::gpumode));
  const Verified random = verify(driver, device, problem(support::Data::random));
  if (!task.exact) throw std::logic_error("the data of the task are not exact at this shape");
  const bool passed = task.passed() && random.passed();
  char bits[48], error[48];
  std::snprintf(bits, sizeof bits, "%lld of %lld", static_cast<long long>(task.bits.equal),
                static_cast<long long>(task.bits.total));
  std::snprintf(error, sizeof error, "%.1e / %.1e", random.bound.largest_error,
                random.bound.bound_there);
  std::printf("%-18s  %-13s  %-19s  %-17s  %-17s  %10lld  %-16s  %s\n", to_string(shape).c_str(),
              task.names.image.c_str(), task.names.variant.c_str(), bits, error,
              static_cast<long long>(random.bound.outside_tolerance), duration(task).c_str(),
              passed ? "PASS" : "FAIL");
  for (const Verified* v : {&task, &random}) {
    if (!v->passed()) std::printf("  %s\n", v->complaint().c_str());
  }
  std::fflush(stdout);
  return passed;
}

}  // namespace

std::string duration(const Verified& v) {
  char text[64];
  if (v.device_seconds == 0) {
    std::snprintf(text, sizeof text, "%.1f s", v.wall_seconds);
  } else if (v.light_us == 0) {
    std::snprintf(text, sizeof text, "%.2f us", v.device_seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.2f us, %.0f %%", v.device_seconds * 1e6, v.light_percent());
  }
  return text;
}

const char* time_legend(const support::DeviceInfo& device) {
  return device.emulated()
             ? "time: wall clock of the emulator; a device time is not measured there"
             : "time: median of 21 with cold caches, and percent of the speed of light";
}

int headline(const RunOptions& options, const support::Driver& driver,
             const support::DeviceInfo& device) {
  const support::Shape shapes[] = {{128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}};
  std::printf("%s on %s, seed %llu\n", nvfp4_build_info(), device.name.c_str(),
              static_cast<unsigned long long>(options.seed));
  std::printf("equal: scales 0..3, every sum exact, bits compared with the reference\n");
  std::printf("error / bound: random scales, the largest error and its bound\n");
  std::printf("%s\n\n", time_legend(device));
  std::printf("%-18s  %-13s  %-19s  %-17s  %-17s  %-10s  %-16s  %s\n", "M x N x K", "image",
              "variant", "equal", "error / bound", "over 1e-3", "time", "verdict");
  std::fflush(stdout);
  bool passed = true;
  for (const support::Shape& shape : shapes) {
    passed = headline_row(shape, options, driver, device) && passed;
  }
  return passed ? kPassed : kFailed;
}

}  // namespace nvfp4_tool
