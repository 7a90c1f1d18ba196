// SPDX-License-Identifier: MIT
// See copy_groups.h.
#include "tools/emulator/hardware/copy_groups.h"

namespace emu {

CopyGroups::Thread& CopyGroups::thread(uint32_t number) {
  if (number >= threads_.size()) threads_.resize(number + 1);
  return threads_[number];
}

CopyGroups::Handle CopyGroups::issue(uint32_t number) {
  const Handle copy = &copies_.emplace_back();
  join(number, copy);
  return copy;
}

void CopyGroups::join(uint32_t number, Handle copy) { thread(number).copies.push_back(copy); }

void CopyGroups::commit(uint32_t number) {
  Thread& t = thread(number);
  t.ends.push_back(t.copies.size());
}

// Who waits asks again and again: what is complete is not looked at twice.
bool CopyGroups::complete(Thread& t, size_t end, bool only_reads) {
  size_t& known = only_reads ? t.read : t.done;
  const bool Copy::*const flag = only_reads ? &Copy::read : &Copy::done;
  while (known < end && t.copies[known]->*flag) ++known;
  return known >= end;
}

bool CopyGroups::complete(uint32_t number, uint32_t allowed, bool only_reads) {
  Thread& t = thread(number);
  return t.ends.size() <= allowed || complete(t, t.ends[t.ends.size() - 1 - allowed], only_reads);
}

bool CopyGroups::all_complete(uint32_t number) {
  Thread& t = thread(number);
  return complete(t, t.copies.size(), false);
}

}  // namespace emu
