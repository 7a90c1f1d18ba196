// SPDX-License-Identifier: MIT
// The time lines of a launch, written to EMU_TRACE when its grid has ended, or up to the fault.
#pragma once

#include <mutex>

#include "tools/emulator/trace/timeline.h"

namespace emu {

class Trace : public GridObserver {
 public:
  std::shared_ptr<Observer> watch(const Cluster& cluster) override;
  void grid_ended(const Launch& launch) override;

 private:
  std::mutex lock_;
  std::vector<std::shared_ptr<Timeline>> timelines_;
};

}  // namespace emu
