// SPDX-License-Identifier: MIT
// Ordinary accesses of all lanes at once, each to bytes of its own in the CTA's shared memory,
// where nothing about them is a Fault. Anything else goes lane by lane (lane_memory.h).
#pragma once

#include "tools/emulator/machine/machine.h"

namespace emu {

class SharedLanes {
 public:
  static constexpr uint32_t most_bytes = 16;

  // Each lane accesses this many bytes in all.
  SharedLanes(Warp& warp, const ptx::Operand& address, uint32_t active, uint32_t bytes);

  // Both tell the observers. False: nothing was done.
  bool read();
  bool write(const uint64_t* const* words, uint32_t bytes_each);

  const uint8_t* const* bytes() const { return from_; }  // by lane, after read()

 private:
  void find(const ptx::Operand& address);
  template <class T>
  uint32_t write_row(const uint64_t* values, uint8_t* to);
  bool write_lanes(const uint64_t* const* words, uint32_t bytes_each, uint32_t* same);
  Warp& warp_;
  const uint32_t active_, bytes_;
  bool fine_ = false;      // all in the CTA itself, and aligned
  bool in_a_row_ = false;  // and lane i's bytes are behind those of lane i - 1
  uint32_t at_[32];        // without the rank
  const uint8_t* from_[32];
};

}  // namespace emu
