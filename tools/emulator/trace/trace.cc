// SPDX-License-Identifier: MIT
// See trace.h.
#include "tools/emulator/trace/trace.h"

#include <algorithm>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/trace/chrome_trace.h"

namespace emu {

std::shared_ptr<Observer> Trace::watch(const Cluster& cluster) {
  std::shared_ptr<Timeline> timeline = Timeline::of(cluster);
  std::lock_guard guard(lock_);
  if (timeline) timelines_.push_back(timeline);
  return timeline;
}

void Trace::grid_ended(const Launch& launch) {
  if (settings().trace.empty()) return;
  for (const auto& timeline : timelines_) timeline->stopped(timeline->fault());
  std::sort(timelines_.begin(), timelines_.end(), [](const auto& a, const auto& b) {
    const Dim3 x = a->block(0), y = b->block(0);
    return std::tie(x.z, x.y, x.x) < std::tie(y.z, y.y, y.x);
  });
  std::string error;
  if (!write_chrome_trace(settings().trace, launch, timelines_, &error)) tell(error);
}

}  // namespace emu
