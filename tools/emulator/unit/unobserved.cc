// SPDX-License-Identifier: MIT
// See unobserved.h.
#include "unobserved.h"

#include <utility>

namespace emu {

void Unobserved::add(uint32_t barrier, uint64_t phase, std::function<void()> release) {
  works_[barrier].push_back({phase, std::move(release)});
}

void Unobserved::observe(uint32_t barrier, uint64_t phase) {
  auto it = works_.find(barrier);
  if (it == works_.end()) return;
  std::deque<Work>& works = it->second;
  for (; !works.empty() && works.front().phase < phase; works.pop_front()) works.front().release();
  if (works.empty()) works_.erase(it);
}

}  // namespace emu
