// SPDX-License-Identifier: MIT
// The .local memory of one warp's threads, with a shadow of the bytes that were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emu {

class LocalMemory {
 public:
  explicit LocalMemory(uint32_t bytes_per_thread) : bytes_(bytes_per_thread) {}

  // Throw Fault illegal_address, misaligned_address, uninitialised.
  void read(uint32_t lane, uint64_t offset, void* to, uint32_t bytes, uint32_t align) const;
  void write(uint32_t lane, uint64_t offset, const void* from, uint32_t bytes, uint32_t align);

  // A stack grows: so many bytes per thread at least. What a new frame finds was written by nobody.
  void reserve(uint32_t bytes_per_thread);
  uint32_t bytes() const { return bytes_; }
  // What is known of the bytes goes with them.
  void copy(uint32_t lane, uint64_t from, uint64_t to, uint32_t bytes);

  // holds(): whether all the bytes were written. forget() takes that back. Both are for bytes that
  // a read or write has checked.
  bool holds(uint32_t lane, uint64_t offset, uint32_t bytes) const;
  void forget(uint32_t lane, uint64_t offset, uint32_t bytes);

 private:
  size_t check(uint32_t lane, uint64_t offset, uint32_t bytes, uint32_t align) const;
  uint32_t bytes_;
  std::vector<uint8_t> data_, written_;  // empty until the first write
};

}  // namespace emu
