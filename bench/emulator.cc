// SPDX-License-Identifier: MIT
// nvfp4_bench emulator: how fast the emulator is on the task's shapes. Every check is on.
#include <time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "bench/commands.h"
#include "nvfp4_gemm.h"
#include "nvfp4emu.h"
#include "tools/harness/compare.h"
#include "tools/harness/device_gemm.h"

namespace bench {
namespace {

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

uint64_t counter(const support::Driver& driver, const char* name) {
  uint64_t value = 0;
  reinterpret_cast<decltype(&nvfp4emu_counters)>(driver.extension("nvfp4emu_counters"))(name,
                                                                                        &value);
  return value;
}

// Whole launches of the library, verified: equal bits, or no row.
bool time_launches(const support::Driver& driver) {
  const support::Shape shapes[] = {{128, 7168, 2048}, {128, 4096, 7168}, {128, 7168, 16384}};
  std::printf("launch,seconds,processor_seconds,gmac_per_processor_second\n");
  for (const support::Shape& shape : shapes) {
    const support::Problem problem = support::make_problem(shape, support::Data::gpumode, 1);
    const support::DeviceGemm gemm(driver, problem);
    std::vector<double> wall, processor;
    for (int i = 0; i < 3; ++i) {
      const double start = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
      if (gemm.enqueue() != NVFP4_SUCCESS) return false;
      driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
      wall.push_back(now(CLOCK_MONOTONIC) - start);
      processor.push_back(now(CLOCK_PROCESS_CPUTIME_ID) - used);
    }
    if (!support::compare_bits(shape, gemm.d(), support::reference(problem)).passed()) return false;
    const double used = median(processor);
    std::printf("%" PRId64 " x %" PRId64 " x %" PRId64 ",%.2f,%.2f,%.2f\n", shape.m, shape.n,
                shape.k, median(wall), used, double(counter(driver, "macs")) / used * 1e-9);
    std::fflush(stdout);
  }
  return true;
}

}  // namespace

bool time_emulator() {
  const support::Driver& driver = support::Driver::get();
  if (!driver.extension("nvfp4emu_counters")) throw std::runtime_error("the driver is no emulator");
  const support::Context context(driver);
  return time_launches(driver);
}

}  // namespace bench
