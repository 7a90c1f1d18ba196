// SPDX-License-Identifier: MIT
// See tensor_columns.h.
#include "tools/emulator/machine/tensor_columns.h"

#include <map>
#include <mutex>
#include <utility>

#include "tools/emulator/base/settings.h"

namespace emu {

namespace {

// Columns in use, by launch and SM. CTAs of an SM may be run by several host threads.
class SmColumns {
 public:
  bool take(const Cta& cta, uint32_t count) {
    std::lock_guard guard(lock_);
    uint32_t& used = used_[key(cta)];
    if (used + count > TensorMemory::columns) return false;
    used += count;
    return true;
  }
  void give_back(const Cta& cta, uint32_t count) {
    std::lock_guard guard(lock_);
    const auto of_sm = used_.find(key(cta));
    if (of_sm != used_.end() && (of_sm->second -= count) == 0) used_.erase(of_sm);
  }

 private:
  using Key = std::pair<uint64_t, uint32_t>;
  static Key key(const Cta& cta) { return {cta.cluster.launch.grid_id, sm_of(cta)}; }
  std::mutex lock_;
  std::map<Key, uint32_t> used_;
};

SmColumns& sm_columns() {
  static SmColumns columns;
  return columns;
}

}  // namespace

std::optional<uint32_t> TensorColumns::allocate(uint32_t count) {
  if (!settings().sm_columns) return memory_.allocate(count);
  if (!sm_columns().take(cta_, count)) return std::nullopt;
  const std::optional<uint32_t> address = memory_.allocate(count);
  if (!address) sm_columns().give_back(cta_, count);
  return address;
}

void TensorColumns::deallocate(uint32_t address, uint32_t count) {
  memory_.deallocate(address, count);
  if (settings().sm_columns) sm_columns().give_back(cta_, count);
  cta_.cluster.observers.tell(event::ColumnsFreed{cta_, TensorMemory::column_of(address), count});
}

}  // namespace emu
