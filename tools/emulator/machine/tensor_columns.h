// SPDX-License-Identifier: MIT
// The columns of a CTA's tensor memory as tcgen05.alloc and dealloc deal them out.
#pragma once

#include <optional>
#include <string>

#include "tools/emulator/machine/machine.h"

namespace emu {

class TensorColumns {
 public:
  explicit TensorColumns(Cta& cta) : cta_(cta), memory_(cta.tensor_memory(Teller{})) {}

  // See TensorMemory. With EMU_SM_COLUMNS an allocation also waits while other CTAs of the launch
  // on the same SM have too many columns.
  std::optional<uint32_t> allocate(uint32_t count);
  void reserve(uint32_t address, uint32_t count) { memory_.reserve(address, count); }
  bool has_reserved() const { return memory_.has_reserved(); }
  void deallocate(uint32_t address, uint32_t count);
  void relinquish() { memory_.relinquish(); }
  uint32_t allocations() const { return memory_.allocations(); }
  uint32_t deallocations() const { return memory_.deallocations(); }
  std::string describe() const { return memory_.describe(); }
  void require(uint32_t column, uint32_t count, const char* who) const {
    memory_.require(column, count, who);
  }

 private:
  Cta& cta_;
  TensorMemory& memory_;
};

}  // namespace emu
