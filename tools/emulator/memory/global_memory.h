// SPDX-License-Identifier: MIT
// Device memory of one emulated device: allocations at device addresses. These are not host
// addresses, except for managed memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "tools/emulator/memory/blank_bytes.h"

namespace emu {

// Rows of bytes in global memory, a stride apart, from the lowest address upwards.
struct Rows {
  uint64_t address, bytes, stride;
  uint32_t count;

  uint64_t end() const { return address + stride * (count - 1) + bytes; }
};

struct ReleaseBytes {
  uint64_t pages = 0;  // size of the mmap that holds the data; 0: it came from new
  void operator()(uint8_t* data) const;
};

struct Allocation {
  uint64_t address = 0, bytes = 0;
  std::unique_ptr<uint8_t[], ReleaseBytes> data;
  std::string label;     // what it is, for reports
  bool managed = false;  // the address is the host's
  bool heap = false;     // a kernel's malloc made it
};

class GlobalMemory {
 public:
  // First address handed out; allocations are aligned to 512 bytes, those from 1 MiB on to
  // 2 MiB, with unmapped gaps between them.
  static constexpr uint64_t base = 0x7f1000000000;

  explicit GlobalMemory(uint64_t capacity) : capacity_(capacity) {}

  uint64_t allocate(uint64_t bytes, std::string label);  // 0 when out of memory; contents are 0xFF
  uint64_t allocate_managed(uint64_t bytes, std::string label);  // at the host's address; zeros
  bool free(uint64_t address);  // false: not the start of an allocation of the host's

  // malloc and free in kernels. 0: the heap is full. Freed memory is no longer found by its
  // address, but its bytes live until the grid has ended, for callers that still hold a pointer of
  // at().
  uint64_t allocate_heap(uint64_t bytes);
  bool free_heap(uint64_t address);
  void limit_heap(uint64_t bytes) { heap_limit_ = bytes; }
  void drop_freed();
  uint64_t frees() const { return frees_.load(std::memory_order_acquire); }

  // Host pointer to [address, address + bytes), throws Fault illegal_address / misaligned_address
  // with the nearest allocation. The pointer stays good until that allocation is freed.
  uint8_t* at(uint64_t address, uint64_t bytes, uint64_t align, const char* who) const;
  // The address and the allocation that holds it or is nearest, in words.
  std::string describe(uint64_t address) const;
  const Allocation* find(uint64_t address) const;  // the allocation that holds address, or nullptr

  // Blank bytes: they were stored from registers or shared memory that had no value. Code that
  // writes through at() must remove its bytes from blank(). Code that reads must mark the bytes
  // that it writes as blank, or throw.
  BlankBytes& blank() const { return blank_; }
  void require_values(uint64_t address, uint64_t bytes, const char* who) const;

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }
  size_t count() const { return by_address_.size(); }

 private:
  mutable std::shared_mutex lock_;
  mutable BlankBytes blank_;
  struct Freed {
    uint64_t bytes;
    std::string label;
  };
  uint64_t place(uint64_t bytes, std::string label);  // with the lock held
  std::string object_at(uint64_t address) const;      // which one, or the nearest, in words
  std::map<uint64_t, Allocation> by_address_;
  std::map<uint64_t, Freed> freed_;  // addresses are never used twice
  uint64_t next_ = base, used_ = 0, capacity_;
  std::vector<Allocation> dropped_;  // by free_heap
  uint64_t heap_used_ = 0;
  std::atomic<uint64_t> heap_limit_ = 8 << 20;  // CU_LIMIT_MALLOC_HEAP_SIZE
  std::atomic<uint64_t> frees_ = 0;
};

}  // namespace emu
