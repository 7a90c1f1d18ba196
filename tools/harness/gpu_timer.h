// SPDX-License-Identifier: MIT
// Device and host time of launches on one stream.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "host/cuda/driver.h"
#include "tools/harness/driver.h"

namespace support {

// Launches number `i` on the stream.
using Launch = std::function<void(int i, CUstream stream)>;

// Launches that belong together: `calls` of them make one recording.
struct Series {
  Launch launch;
  int calls;
};

// A series that calls `run(copy, stream)` on one copy after the other, each equally often: about
// `least` times in all, or once each if there are more copies.
template <typename Copies, typename Run>
Series in_turns(const Copies& copies, Run run, int least = 20) {
  const int count = int(copies.size());
  const auto launch = [&copies, run](int i, CUstream stream) {
    run(*copies[size_t(i) % copies.size()], stream);
  };
  return {launch, count * std::max(1, least / count)};
}

// How many copies of a working set pass through before one comes back, so that more than three
// times the L2 was read between: the copy finds its cache lines gone.
int cold_copies(double bytes_of_one, double l2_bytes);

// The sample that so much of all is below; throws where there is none.
double quantile(std::vector<double> samples, double q);
inline double median(const std::vector<double>& samples) { return quantile(samples, 0.5); }

class GpuTimer {
 public:
  explicit GpuTimer(const Driver& driver);  // throws where the driver has no graphs
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  // Microseconds per launch: `calls` launches recorded as a graph once, replayed `replays` times,
  // each replay a sample between two events. Two replays warm up.
  std::vector<double> graph(const Launch& launch, int calls, int replays);
  // Times of each series as graph() has it, a replay of each in turn, so that the clock affects all
  // equally.
  std::vector<std::vector<double>> interleaved(const std::vector<Series>& all, int replays);
  // The same launches enqueued one by one each time.
  std::vector<double> plain(const Launch& launch, int calls, int replays);
  // Host microseconds per launch, without waiting for the device.
  std::vector<double> host(const Launch& launch, int calls, int replays);

  CUstream stream() const { return stream_; }
  void wait() const;

 private:
  struct Recording;
  double between_events(const std::function<void()>& work);
  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
  decltype(&::cuStreamBeginCapture) begin_capture_;
  decltype(&::cuStreamEndCapture) end_capture_;
  decltype(&::cuGraphInstantiateWithFlags) instantiate_;
  decltype(&::cuGraphLaunch) launch_graph_;
  decltype(&::cuGraphExecDestroy) destroy_exec_;
  decltype(&::cuGraphDestroy) destroy_graph_;
};

}  // namespace support
