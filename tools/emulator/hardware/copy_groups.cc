// SPDX-License-Identifier: MIT
// See copy_groups.h.
#include "tools/emulator/hardware/copy_groups.h"

#include <algorithm>

namespace emu {

CopyGroups::Handle CopyGroups::issue(uint32_t thread) {
  auto copy = std::make_shared<Copy>();
  join(thread, copy);
  return copy;
}

void CopyGroups::join(uint32_t thread, const Handle& copy) {
  threads_[thread].open.push_back(copy);
}

void CopyGroups::commit(uint32_t thread) {
  Thread& t = threads_[thread];
  t.groups.push_back(std::move(t.open));
  t.open.clear();
}

bool CopyGroups::complete(const Group& group, bool only_reads) {
  return std::all_of(group.begin(), group.end(),
                     [&](const Handle& c) { return only_reads ? c->read : c->done; });
}

bool CopyGroups::complete(uint32_t thread, uint32_t allowed, bool only_reads) {
  auto& groups = threads_[thread].groups;
  while (!groups.empty() && complete(groups.front(), false)) groups.pop_front();
  if (groups.size() <= allowed) return true;
  return std::all_of(groups.begin(), groups.end() - allowed,
                     [&](const Group& g) { return complete(g, only_reads); });
}

bool CopyGroups::all_complete(uint32_t thread) {
  return complete(thread, 0, false) && complete(threads_[thread].open, false);
}

}  // namespace emu
