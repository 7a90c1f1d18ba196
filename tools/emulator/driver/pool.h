// SPDX-License-Identifier: MIT
// Memory pools. A pool accounts for what is allocated from it and limits it; it keeps no memory
// back, because an address is never used twice here and a stale pointer has to be found.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <cstdint>

namespace emu::driver {

class MemoryPool {
 public:
  explicit MemoryPool(uint64_t most) : most_(most) {}

  bool has_room(uint64_t bytes) const { return bytes <= most_ - used_; }
  void take(uint64_t bytes);
  void give_back(uint64_t bytes) { used_ -= bytes; }
  bool empty() const { return used_ == 0; }

  // INVALID_VALUE for what CUDA 13.0 does not know or does not let a program set.
  CUresult get(CUmemPool_attribute attribute, void* value) const;
  CUresult set(CUmemPool_attribute attribute, const void* value);

  bool destroyed = false;  // by its program, while allocations of it live

 private:
  int* reuse(CUmemPool_attribute attribute);
  uint64_t most_, used_ = 0;
  uint64_t used_high_ = 0, reserved_high_ = 0;
  uint64_t release_threshold_ = 0;
  int follow_events_ = 1, opportunistic_ = 1, internal_dependencies_ = 1;
};

}  // namespace emu::driver
