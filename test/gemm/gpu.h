// SPDX-License-Identifier: MIT
// The device that the end-to-end tests run on: the first one of whatever driver the loader finds.
#pragma once

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/compare.h"
#include "support/device_gemm.h"
#include "support/driver.h"
#include "support/problem.h"

namespace gemm_test {

struct Gpu {
  const support::Driver& driver = support::Driver::get();
  support::DeviceInfo info = support::devices(driver).at(0);
  support::Context context{driver};

  // "" if the library has kernels for the device.
  std::string reason_to_skip() const {
    const int capability = info.compute_capability();
    if (capability == 100 || capability == 103) return "";
    return info.name + " has no kernel yet";
  }
};

// Every variant by name, for tests of what depends on the tile. Where a test leaves the choice to
// the planner, small problems get the narrowest.
#define EACH_VARIANT GENERATE("sm100_128x64x256", "sm100_128x128x256", "sm100_128x256x256")

// The same problem for one variant.
inline support::Problem forced(const char* variant, support::Problem problem) {
  problem.variant = variant;
  return problem;
}

// Runs the problem and requires the reference's bits, untouched inputs, guards and gaps.
inline void require_reference_bits(const Gpu& gpu, const support::Problem& problem,
                                   uint8_t poison = 0x7F) {
  INFO(to_string(problem.shape) << ", alpha " << problem.alpha << ", variant "
                                << (problem.variant ? problem.variant : "chosen"));
  REQUIRE(support::sums_are_exact(problem));
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, problem, poison);
  const support::BitVerdict verdict =
      support::compare_bits(problem.shape, d, support::reference(problem));
  INFO(verdict.first_difference);
  REQUIRE(verdict.equal == verdict.total);
  REQUIRE(verdict.trusted());
}

}  // namespace gemm_test

// Without a driver the test fails: `make test` brings one. On a GPU that has no kernel it is
// skipped.
#define USE_GPU(gpu)        \
  const gemm_test::Gpu gpu; \
  if (!gpu.reason_to_skip().empty()) SKIP_TEST(gpu.reason_to_skip())
