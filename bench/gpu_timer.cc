// SPDX-License-Identifier: MIT
#include "bench/gpu_timer.h"

#include <chrono>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

template <class Function>
void find(const support::Driver& driver, Function& function, const char* name) {
  function = reinterpret_cast<Function>(driver.extension(name));
  if (!function) throw std::runtime_error(std::string("the driver has no ") + name);
}

constexpr int kWarmUp = 2;

}  // namespace

GpuTimer::GpuTimer(const support::Driver& driver) : driver_(driver) {
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

std::vector<double> GpuTimer::graph(const Launch& launch, int calls, int replays) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  driver_.check(begin_capture_(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                "cuStreamBeginCapture");
  for (int i = 0; i < calls; ++i) launch(i, stream_);
  driver_.check(end_capture_(stream_, &graph), "cuStreamEndCapture");
  driver_.check(instantiate_(&exec, graph, 0), "cuGraphInstantiate");
  std::vector<double> samples;
  for (int i = -kWarmUp; i < replays; ++i) {
    const double us =
        between_events([&] { driver_.check(launch_graph_(exec, stream_), "cuGraphLaunch"); });
    if (i >= 0) samples.push_back(us / calls);
  }
  destroy_exec_(exec);
  destroy_graph_(graph);
  return samples;
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

}  // namespace bench
