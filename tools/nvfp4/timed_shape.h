// SPDX-License-Identifier: MIT
// A shape's operands on the device, where each variant is timed with cold weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/harness/device_gemm.h"
#include "tools/harness/gpu_timer.h"
#include "tools/nvfp4/chooser.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

class TimedShape {
 public:
  TimedShape(const support::Driver& driver, const RunOptions& options, uint64_t workspace_bytes);

  // Times the variants interleaved, by graphs of launches that rotate over copies. "": the
  // planner's choice.
  std::vector<Measured> time(const std::vector<std::string>& variants, int replays);

 private:
  support::Series series_of(const std::string& variant) const;

  support::GpuTimer timer_;
  support::DeviceBuffer workspace_;
  std::vector<std::unique_ptr<support::DeviceGemm>> copies_;
};

}  // namespace nvfp4_tool
