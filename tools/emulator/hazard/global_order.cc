// SPDX-License-Identifier: MIT
// See global_order.h.
#include "global_order.h"

namespace emu {

GlobalOrder::Page& GlobalOrder::page_of(uint64_t number) {
  std::lock_guard guard(lock_);
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) page = std::make_unique<Page>();
  return *page;
}

void GlobalOrder::mark_written(uint64_t address, uint64_t bytes) {
  uint64_t low = lowest_, high = highest_;
  while (address < low && !lowest_.compare_exchange_weak(low, address)) continue;
  while (address + bytes > high && !highest_.compare_exchange_weak(high, address + bytes)) continue;
}

void GlobalOrder::release(uint64_t address, uint32_t cluster, const Knowledge& handed) {
  std::lock_guard guard(lock_);
  Foreign& left = flags_[address];
  join(left, handed.others);
  left[cluster].join(handed.seen);
}

Foreign GlobalOrder::acquire(uint64_t address) {
  std::lock_guard guard(lock_);
  const auto it = flags_.find(address);
  return it == flags_.end() ? Foreign{} : it->second;
}

}  // namespace emu
