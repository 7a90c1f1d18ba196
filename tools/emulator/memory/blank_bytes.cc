// SPDX-License-Identifier: MIT
// See blank_bytes.h.
#include "tools/emulator/memory/blank_bytes.h"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace emu {

// Keeps the parts of ranges outside [address, end).
void BlankBytes::cut(uint64_t address, uint64_t end) {
  auto it = by_address_.lower_bound(address);
  if (it != by_address_.begin()) {
    Range& before = std::prev(it)->second;
    const uint64_t its_end = before.address + before.bytes;
    if (its_end > address) before.bytes = address - before.address;
    if (its_end > end) by_address_[end] = {end, its_end - end, before.why};
  }
  while (it != by_address_.end() && it->first < end) {
    const Range r = it->second;
    it = by_address_.erase(it);
    if (r.address + r.bytes > end) by_address_[end] = {end, r.address + r.bytes - end, r.why};
  }
}

// Neighbours of one reason become one range.
void BlankBytes::add(const Range& range) {
  std::lock_guard guard(lock_);
  cut(range.address, range.address + range.bytes);
  auto behind = by_address_.lower_bound(range.address);
  if (behind != by_address_.begin()) {
    Range& before = std::prev(behind)->second;
    if (before.address + before.bytes == range.address && before.why == range.why) {
      before.bytes += range.bytes;
      return;
    }
  }
  by_address_[range.address] = range;
  any_.store(true, std::memory_order_release);
}

void BlankBytes::remove(uint64_t address, uint64_t bytes) {
  if (!any()) return;
  std::lock_guard guard(lock_);
  cut(address, address + bytes);
  any_.store(!by_address_.empty(), std::memory_order_release);
}

std::vector<BlankBytes::Range> BlankBytes::within(uint64_t address, uint64_t bytes) const {
  std::vector<Range> all;
  if (!any()) return all;
  std::shared_lock guard(lock_);
  auto it = by_address_.upper_bound(address);
  if (it != by_address_.begin()) --it;
  for (; it != by_address_.end() && it->first < address + bytes; ++it) {
    const Range& r = it->second;
    const uint64_t first = std::max(r.address, address);
    const uint64_t end = std::min(r.address + r.bytes, address + bytes);
    if (first < end) all.push_back({first, end - first, r.why});
  }
  return all;
}

}  // namespace emu
