// SPDX-License-Identifier: MIT
#include "tools/harness/gpu_timer.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

namespace support {
namespace {

template <class Function>
void find(const Driver& driver, Function& function, const char* name) {
  function = reinterpret_cast<Function>(driver.extension(name));
  if (!function) throw std::runtime_error(std::string("the driver has no ") + name);
}

constexpr int kWarmUp = 2;

}  // namespace

int cold_copies(double bytes_of_one, double l2_bytes) {
  return 1 + int(std::floor(3 * l2_bytes / bytes_of_one)) + (bytes_of_one < l2_bytes ? 1 : 0);
}

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) throw std::runtime_error("a quantile of nothing");
  const auto at = samples.begin() + std::ptrdiff_t(std::llround(q * double(samples.size() - 1)));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

GpuTimer::GpuTimer(const Driver& driver) : driver_(driver) {
  find(driver, begin_capture_, "cuStreamBeginCapture_v2");
  find(driver, end_capture_, "cuStreamEndCapture");
  find(driver, instantiate_, "cuGraphInstantiateWithFlags");
  find(driver, launch_graph_, "cuGraphLaunch");
  find(driver, destroy_exec_, "cuGraphExecDestroy");
  find(driver, destroy_graph_, "cuGraphDestroy");
  driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver.check(driver.cuEventCreate(&start_, CU_EVENT_DEFAULT), "cuEventCreate");
  driver.check(driver.cuEventCreate(&stop_, CU_EVENT_DEFAULT), "cuEventCreate");
}

GpuTimer::~GpuTimer() {
  driver_.cuEventDestroy(start_);
  driver_.cuEventDestroy(stop_);
  driver_.cuStreamDestroy(stream_);
}

void GpuTimer::wait() const {
  driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

double GpuTimer::between_events(const std::function<void()>& work) {
  float milliseconds = 0;
  driver_.check(driver_.cuEventRecord(start_, stream_), "cuEventRecord");
  work();
  driver_.check(driver_.cuEventRecord(stop_, stream_), "cuEventRecord");
  driver_.check(driver_.cuEventSynchronize(stop_), "cuEventSynchronize");
  driver_.check(driver_.cuEventElapsedTime(&milliseconds, start_, stop_), "cuEventElapsedTime");
  return 1e3 * double(milliseconds);
}

// A series as a graph.
struct GpuTimer::Recording {
  GpuTimer& timer;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  int calls;

  Recording(GpuTimer& t, const Series& series) : timer(t), calls(series.calls) {
    t.driver_.check(t.begin_capture_(t.stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                    "cuStreamBeginCapture");
    for (int i = 0; i < calls; ++i) series.launch(i, t.stream_);
    t.driver_.check(t.end_capture_(t.stream_, &graph), "cuStreamEndCapture");
    t.driver_.check(t.instantiate_(&exec, graph, 0), "cuGraphInstantiate");
  }
  ~Recording() {
    if (exec) timer.destroy_exec_(exec);
    if (graph) timer.destroy_graph_(graph);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  double replay() {
    const auto launch = [&] {
      timer.driver_.check(timer.launch_graph_(exec, timer.stream_), "cuGraphLaunch");
    };
    return timer.between_events(launch) / calls;
  }
};

std::vector<std::vector<double>> GpuTimer::interleaved(const std::vector<Series>& all,
                                                       int replays) {
  std::vector<std::unique_ptr<Recording>> recordings;
  for (const Series& series : all) recordings.push_back(std::make_unique<Recording>(*this, series));
  std::vector<std::vector<double>> samples(all.size());
  for (int i = -kWarmUp; i < replays; ++i) {
    for (size_t s = 0; s < all.size(); ++s) {
      const double us = recordings[s]->replay();
      if (i >= 0) samples[s].push_back(us);
    }
  }
  return samples;
}

std::vector<double> GpuTimer::graph(const Launch& launch, int calls, int replays) {
  return interleaved({{launch, calls}}, replays)[0];
}

std::vector<double> GpuTimer::plain(const Launch& launch, int calls, int replays) {
  std::vector<double> samples;
  for (int i = -kWarmUp; i < replays; ++i) {
    const double us = between_events([&] {
      for (int c = 0; c < calls; ++c) launch(c, stream_);
    });
    if (i >= 0) samples.push_back(us / calls);
  }
  return samples;
}

std::vector<double> GpuTimer::host(const Launch& launch, int calls, int replays) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  for (int i = -kWarmUp; i < replays; ++i) {
    wait();
    const Clock::time_point start = Clock::now();
    for (int c = 0; c < calls; ++c) launch(c, stream_);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (i >= 0) samples.push_back(us / calls);
  }
  wait();
  return samples;
}

}  // namespace support
