// SPDX-License-Identifier: MIT
// Plain accesses of all lanes at once, each to bytes of its own in one allocation of global memory,
// where nothing about them is a Fault. Anything else goes lane by lane (lane_memory.h).
#pragma once

#include "tools/emulator/machine/machine.h"

namespace emu {

class GlobalLanes {
 public:
  static constexpr uint32_t most_bytes = 16;

  // Each lane accesses this many bytes in all. An address may be a generic one.
  GlobalLanes(Warp& warp, const ptx::Operand& address, uint32_t active, uint32_t bytes);

  // Both tell the observers, and count the bytes. False: nothing was done.
  bool read(Use use);
  bool write(const uint64_t* const* words, uint32_t bytes_each);

  uint8_t* const* bytes() const { return at_; }  // by lane, after read()

 private:
  bool find(const ptx::Operand& address);
  bool in_one_allocation(uint64_t begin, uint64_t end);
  bool is_constant(uint64_t begin, uint64_t end) const;
  Warp& warp_;
  const uint32_t active_, bytes_;
  bool fine_ = false;
  uint64_t base_ = 0, end_ = 0;
  uint32_t from_base_[32];  // by lane
  uint8_t* at_[32];
};

}  // namespace emu
