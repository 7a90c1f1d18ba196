// SPDX-License-Identifier: MIT
#include "tools/nvfp4/verify.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"

namespace nvfp4_tool {

using support::DeviceGemm;
using support::DeviceInfo;
using support::Driver;
using support::Problem;

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

Oddities count_oddities(const std::vector<uint16_t>& d) {
  Oddities odd;
  for (const uint16_t bits : d) {
    const uint16_t size = bits & 0x7FFF;
    odd.zeros += size == 0, odd.infinities += size == 0x7C00, odd.nans += size > 0x7C00;
  }
  return odd;
}

std::string share(int64_t part, int64_t all, const char* what) {
  return std::to_string(part) + " of " + std::to_string(all) + " elements of D are " + what;
}

}  // namespace

// Other data fill the caches before each run, because the inputs of a layer are cold.
Times time_on_device(const Driver& driver, const std::function<void()>& enqueue) {
  const support::DeviceBuffer eviction(driver, size_t(512) << 20);
  Stopwatch watch(driver);
  std::vector<double> seconds;
  for (int i = 0; i < kTimedRuns; ++i) {
    driver.check(driver.cuMemsetD8(eviction.address(), uint8_t(i), eviction.bytes()), "cuMemsetD8");
    watch.start();
    enqueue();
    seconds.push_back(watch.stop());
  }
  std::sort(seconds.begin(), seconds.end());
  constexpr int kTenth = kTimedRuns / 10;
  return {seconds[kTimedRuns / 2], seconds[kTenth], seconds[kTimedRuns - 1 - kTenth]};
}

std::string Verified::complaint() const {
  if (passed()) return "";
  if (!exact) return bound.first_outside;
  if (!bits.first_difference.empty()) return bits.first_difference;
  return "most of D is zero: the comparison proves nothing";
}

std::vector<std::string> Verified::notes() const {
  std::vector<std::string> notes;
  const int64_t all = bits.total;
  if (10 * odd.zeros > all)
    notes.push_back(share(odd.zeros, all, "zero: such a result says little about the kernel"));
  if (odd.infinities > 0)
    notes.push_back(share(odd.infinities, all, "infinite: beyond 65504, the largest of fp16"));
  if (odd.nans > 0)
    notes.push_back(share(odd.nans, all, "NaN: from a NaN in A, B or alpha, or infinity times 0"));
  return notes;
}

Verified verify(const Driver& driver, const DeviceInfo& device, const Problem& problem) {
  const std::string shape = to_string(problem.shape());
  const int capability = device.compute_capability();
  Verified v;
  support::progress(shape + ": on the device");
  const DeviceGemm gemm(driver, problem);
  const auto start = std::chrono::steady_clock::now();
  enqueue(gemm);
  driver.check(driver.cuCtxSynchronize(), "the kernel: cuCtxSynchronize");
  v.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  v.names = last_call();
  v.d = gemm.d();
  v.odd = count_oddities(v.d);
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);

  const std::vector<uint16_t> want =
      support::reference(problem, support::progress_of(shape + ": reference"));
  v.exact = support::sums_are_exact(problem);
  v.bits = support::compare_bits(problem.shape(), v.d, want);
  if (!v.exact) {
    v.bound = support::compare_bound(problem, v.d, want, capability,
                                     support::progress_of(shape + ": error bound"));
  }

  const nvfp4_plan_info info = support::plan_info(gemm.desc, capability, device.sms);
  v.plan = info;
  v.light_us = support::light_us(info);
  v.limit = v.light_us == 0 ? "" : info.memory_ns >= info.math_ns ? "memory" : "math";
  if (!device.emulated()) {
    support::progress(shape + ": timing");
    const Times times = time_on_device(driver, [&] { enqueue(gemm); });
    v.device_seconds = times.median, v.device_p10 = times.p10, v.device_p90 = times.p90;
  }
  support::progress_done();
  return v;
}

}  // namespace nvfp4_tool
