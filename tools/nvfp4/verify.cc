// SPDX-License-Identifier: MIT
#include "tools/nvfp4/verify.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/progress.h"

namespace nvfp4_tool {

using support::DeviceGemm;
using support::DeviceInfo;
using support::Driver;
using support::Problem;
using support::progress;
using support::progress_done;

namespace {

void enqueue(const DeviceGemm& gemm, CUstream stream = nullptr) {
  if (gemm.enqueue(stream) != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

// A pair of events around work on the default stream.
class Stopwatch {
 public:
  explicit Stopwatch(const Driver& driver) : driver_(driver) {
    driver.check(driver.cuEventCreate(&start_, CU_EVENT_DEFAULT), "cuEventCreate");
    driver.check(driver.cuEventCreate(&stop_, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  ~Stopwatch() {
    driver_.cuEventDestroy(start_);
    driver_.cuEventDestroy(stop_);
  }
  void start() { driver_.check(driver_.cuEventRecord(start_, nullptr), "cuEventRecord"); }
  double stop() {
    float milliseconds = 0;
    driver_.check(driver_.cuEventRecord(stop_, nullptr), "cuEventRecord");
    driver_.check(driver_.cuEventSynchronize(stop_), "cuEventSynchronize");
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, start_, stop_), "cuEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  const Driver& driver_;
  CUevent start_ = nullptr, stop_ = nullptr;
};

// Median of 21 runs. The caches are filled with other data before each, as the inputs of a layer
// are cold.
double time_on_device(const Driver& driver, const DeviceGemm& gemm) {
  constexpr int kRuns = 21;
  const support::DeviceBuffer eviction(driver, size_t(512) << 20);
  Stopwatch watch(driver);
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    driver.check(driver.cuMemsetD8(eviction.address(), uint8_t(i), eviction.bytes()), "cuMemsetD8");
    watch.start();
    enqueue(gemm);
    seconds.push_back(watch.stop());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

// The least time a B200 can take: its memory at 7.68 TB/s (7680 pins at 7.992 Gb/s, rounded as the
// GPU MODE task does) or its FP4 units at 1.5 GHz on 148 SMs, whichever takes longer.
double speed_of_light(const DeviceInfo& device, const support::Shape& s) {
  if (device.name.find("B200") == std::string::npos) return 0;
  const double m = double(s.m), n = double(s.n), k = double(s.k), l = double(s.l);
  const double bytes = l * ((m + n) * k * 0.5625 + 2 * m * n);
  const double operations = l * 2 * m * n * k;
  return std::max(bytes / 7.68e12, operations / (32768.0 * 148 * 1.5e9));
}

}  // namespace

std::string Verified::complaint() const {
  if (passed()) return "";
  if (!exact) return bound.first_outside;
  if (!bits.first_difference.empty()) return bits.first_difference;
  return "most of D is zero: the comparison proves nothing";
}

Verified verify(const Driver& driver, const DeviceInfo& device, const Problem& problem) {
  const std::string shape = to_string(problem.shape);
  Verified v;
  progress(shape + ": on the device");
  const DeviceGemm gemm(driver, problem);
  const auto start = std::chrono::steady_clock::now();
  v.names = catch_call_log([&] { enqueue(gemm); });
  driver.check(driver.cuCtxSynchronize(), "the kernel: cuCtxSynchronize");
  v.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  v.d = gemm.d();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);

  progress(shape + ": reference");
  const std::vector<uint16_t> want = support::reference(problem);
  v.exact = support::sums_are_exact(problem);
  v.bits = support::compare_bits(problem.shape, v.d, want);
  progress(shape + ": error bound");
  if (!v.exact) v.bound = support::compare_bound(problem, v.d, want, device.compute_capability());

  if (!device.emulated()) {
    progress(shape + ": timing");
    v.device_seconds = time_on_device(driver, gemm);
    v.light_percent = 100 * speed_of_light(device, problem.shape) / v.device_seconds;
  }
  progress_done();
  return v;
}

}  // namespace nvfp4_tool
