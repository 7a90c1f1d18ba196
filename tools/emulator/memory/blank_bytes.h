// SPDX-License-Identifier: MIT
// The bytes of global memory that were stored over with registers that had no value. There are few
// or none, so that they are kept apart, and whoever reads or writes asks first whether there are
// any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

namespace emu {

class BlankBytes {
 public:
  struct Range {
    uint64_t address, bytes;
    std::string why;  // who stored there, for the report of whoever needs the value
  };

  bool any() const { return any_.load(std::memory_order_acquire); }
  void add(const Range& range);
  void remove(uint64_t address, uint64_t bytes);  // they have values now, or are gone
  // What of these bytes is blank, from the lowest address upwards.
  std::vector<Range> within(uint64_t address, uint64_t bytes) const;

 private:
  void cut(uint64_t address, uint64_t end);
  mutable std::shared_mutex lock_;
  std::atomic<bool> any_ = false;
  std::map<uint64_t, Range> by_address_;  // they do not overlap
};

}  // namespace emu
