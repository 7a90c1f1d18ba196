// SPDX-License-Identifier: MIT
// Device and host time of launches on one stream.
#pragma once

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
