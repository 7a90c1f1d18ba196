// SPDX-License-Identifier: MIT
// Ordinary stores to one CTA's shared memory that the async proxy may not see yet (PTX ISA,
// Proxies): tcgen05.mma, tcgen05.cp and bulk copies out of shared memory read them only behind
// a fence.proxy.async.
//
// Any fence of the cluster behind the store counts, by whichever thread: whether it lies on the way
// from the store to the reader would take vector clocks to say. So no correct program is refused,
// and one that has no fence, or has it before its stores, is found.
#pragma once

#include <cstdint>
#include <vector>

namespace emu {

class ProxyOrder {
 public:
  void fence() { ++fences_; }
  void generic_write(uint32_t address, uint32_t bytes);
  void async_write(uint32_t address, uint32_t bytes);  // takes the place of what stores wrote

  // Throw Fault ordering when a store to what `who` is about to read has no fence behind it.
  void check_chunks_read(const std::vector<uint32_t>& addresses, const char* who) const;
  void check_read(uint32_t address, uint32_t bytes, const char* who) const;

 private:
  void check_chunk(uint32_t address, const char* who) const;

  uint64_t fences_ = 1;
  // Of each 16 bytes, as far as anybody stored: the fences when that happened last, 0 = no store.
  std::vector<uint64_t> stored_;
};

}  // namespace emu
