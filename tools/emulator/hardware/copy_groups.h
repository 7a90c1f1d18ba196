// SPDX-License-Identifier: MIT
// The copy groups of one CTA's threads: cp.async groups and bulk async-groups (PTX ISA 9.7.9.25).
//
// A copy that a thread issues is open until the thread commits it to a group; wait_group n then
// waits until at most the n youngest groups are incomplete.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

namespace emu {

class CopyGroups {
 public:
  // How far one copy came. `read` = its source may be reused; `done` = its writes are visible.
  struct Copy {
    bool read = false, done = false;
  };
  using Handle = std::shared_ptr<Copy>;  // kept by the effect, so it may outlive the thread

  Handle issue(uint32_t thread);
  void join(uint32_t thread, const Handle& copy);  // that another thread issued, for both
  void commit(uint32_t thread);
  // True when all but the `allowed` youngest committed groups are complete.
  bool complete(uint32_t thread, uint32_t allowed, bool only_reads);
  // True when everything the thread ever issued, committed or not, is complete (cp.async.wait_all).
  bool all_complete(uint32_t thread);

 private:
  using Group = std::deque<Handle>;
  struct Thread {
    Group open;
    std::deque<Group> groups;
  };
  static bool complete(const Group& group, bool only_reads);
  std::map<uint32_t, Thread> threads_;
};

}  // namespace emu
