// SPDX-License-Identifier: MIT
// The copy groups of one CTA's threads: cp.async groups and bulk async-groups (PTX ISA 9.7.9.25).
//
// A copy that a thread issues is open until the thread commits it to a group; wait_group n then
// waits until at most the n youngest groups are incomplete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace emu {

class CopyGroups {
 public:
  // How far one copy came. `read`: its source may be reused. `done`: its writes are visible, too. A
  // flag that is set stays set.
  struct Copy {
    bool read = false, done = false;
  };
  using Handle = Copy*;  // valid as long as the CTA, which lives until its cluster ends

  Handle issue(uint32_t thread);
  // Adds `copy`, which another thread issued on behalf of both threads.
  void join(uint32_t thread, Handle copy);
  void commit(uint32_t thread);
  // True when all but the `allowed` youngest committed groups are complete.
  bool complete(uint32_t thread, uint32_t allowed, bool only_reads);
  // True when everything the thread ever issued, committed or not, is complete (cp.async.wait_all).
  bool all_complete(uint32_t thread);

 private:
  struct Thread {
    std::vector<Handle> copies;  // in their order
    std::vector<size_t> ends;    // of the groups: how many copies there are up to it
    size_t done = 0, read = 0;   // copies known to be done, and read, counted from the first
  };
  Thread& thread(uint32_t number);
  static bool complete(Thread& thread, size_t end, bool only_reads);
  std::deque<Copy> copies_;
  std::vector<Thread> threads_;
};

}  // namespace emu
