// SPDX-License-Identifier: MIT
// Device memory of one emulated device.
#include "tools/emulator/memory/global_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

#include "tools/emulator/base/fault.h"

namespace emu {

namespace {
constexpr uint64_t alignment = 512;  // of cuMemAlloc; the manual promises 256
// Large allocations begin with a page of the device: programs divide them and count on that.
constexpr uint64_t large = 1ull << 20, large_alignment = 2ull << 20;
constexpr uint64_t gap = 64ull << 10;  // unmapped, so that an overrun hits nothing
constexpr uint8_t poison = 0xFF;       // NaN in every floating-point format

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }
}  // namespace

uint64_t GlobalMemory::allocate(uint64_t bytes, std::string label) {
  std::unique_lock guard(lock_);
  return place(bytes, std::move(label));
}

uint64_t GlobalMemory::place(uint64_t bytes, std::string label) {
  if (bytes == 0 || bytes > capacity_ - used_) return 0;
  Allocation a;
  a.data.reset(new (std::nothrow) uint8_t[bytes]);
  if (!a.data) return 0;
  memset(a.data.get(), poison, bytes);
  a.address = round_up(next_, bytes >= large ? large_alignment : alignment);
  a.bytes = bytes;
  a.label = std::move(label);
  // Never reused: a stale pointer stays invalid.
  next_ = a.address + round_up(bytes, alignment) + gap;
  used_ += bytes;
  uint64_t address = a.address;
  by_address_.emplace(address, std::move(a));
  return address;
}

uint64_t GlobalMemory::allocate_heap(uint64_t bytes) {
  std::unique_lock guard(lock_);
  if (bytes > heap_limit_ - std::min<uint64_t>(heap_used_, heap_limit_)) return 0;
  const uint64_t address = place(bytes, "what malloc returned in a kernel");
  if (!address) return 0;
  by_address_.at(address).heap = true;
  heap_used_ += bytes;
  return address;
}

bool GlobalMemory::free_heap(uint64_t address) {
  std::unique_lock guard(lock_);
  const auto it = by_address_.find(address);
  if (it == by_address_.end() || !it->second.heap) return false;
  used_ -= it->second.bytes;
  heap_used_ -= it->second.bytes;
  blank_.remove(address, it->second.bytes);
  freed_[address] = {it->second.bytes, it->second.label};
  dropped_.push_back(std::move(it->second));
  by_address_.erase(it);
  frees_.fetch_add(1, std::memory_order_release);
  return true;
}

void GlobalMemory::drop_freed() {
  std::unique_lock guard(lock_);
  dropped_.clear();
}

namespace {
// Pages that nobody may touch yet, with one before and one after; the first of them, or nullptr.
uint8_t* reserve_pages(uint64_t pages, uint64_t align) {
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), all = pages + align + 2 * page;
  void* const mapped = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<uint8_t*>(mapped);
  uint8_t* const first = begin + (round_up(reinterpret_cast<uintptr_t>(begin) + page, align) -
                                  reinterpret_cast<uintptr_t>(begin));
  const uint64_t before = uint64_t(first - page - begin), after = all - before - pages - 2 * page;
  if (before) munmap(begin, before);
  if (after) munmap(first + pages + page, after);
  return first;
}
}  // namespace

uint64_t GlobalMemory::allocate_managed(uint64_t bytes, std::string label) {
  std::unique_lock guard(lock_);
  if (bytes == 0 || bytes > capacity_ - used_) return 0;
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), pages = round_up(bytes, page);
  uint8_t* const first = reserve_pages(pages, bytes >= large ? large_alignment : page);
  if (!first) return 0;
  Allocation a;
  a.data = {first, ReleaseBytes{pages}};
  a.address = reinterpret_cast<uintptr_t>(first);
  const bool of_ours = a.address + pages > base && a.address < next_;  // an address given out
  if (of_ours || mprotect(first, pages, PROT_READ | PROT_WRITE)) return 0;
  a.bytes = bytes;
  a.label = std::move(label);
  a.managed = true;
  used_ += bytes;
  const uint64_t address = a.address;
  by_address_.emplace(address, std::move(a));
  return address;
}

void ReleaseBytes::operator()(uint8_t* data) const {
  if (!pages) {
    delete[] data;
    return;
  }
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  munmap(data - page, pages + 2 * page);
}

bool GlobalMemory::free(uint64_t address) {
  std::unique_lock guard(lock_);
  auto it = by_address_.find(address);
  if (it == by_address_.end() || it->second.heap) return false;
  used_ -= it->second.bytes;
  blank_.remove(address, it->second.bytes);
  freed_[address] = {it->second.bytes, it->second.label};
  by_address_.erase(it);
  return true;
}

const Allocation* GlobalMemory::find(uint64_t address) const {
  std::shared_lock guard(lock_);
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return nullptr;
  const Allocation& a = std::prev(it)->second;
  return address - a.address < a.bytes ? &a : nullptr;
}

namespace {
std::string place(const Allocation& a, uint64_t address) {
  bool before = address < a.address;
  uint64_t distance = before ? a.address - address : address - (a.address + a.bytes);
  const char* where = before ? "before" : "beyond the end of";
  if (!before && address < a.address + a.bytes) {
    distance = address - a.address;
    where = "into";
  }
  return format("0x%llx bytes %s %s [0x%llx, 0x%llx)", (unsigned long long)distance, where,
                a.label.empty() ? "the allocation" : a.label.c_str(), (unsigned long long)a.address,
                (unsigned long long)(a.address + a.bytes));
}

// The nearest allocation in words.
std::string nearest(const std::map<uint64_t, Allocation>& all, uint64_t address) {
  if (all.empty()) return "nothing is allocated";
  auto next = all.upper_bound(address);
  if (next == all.begin()) return place(next->second, address);
  const Allocation& before = std::prev(next)->second;
  if (next == all.end()) return place(before, address);
  uint64_t behind = address - (before.address + before.bytes), ahead = next->first - address;
  return place(address < before.address + before.bytes || behind <= ahead ? before : next->second,
               address);
}
}  // namespace

std::string GlobalMemory::object_at(uint64_t address) const {
  if (auto freed = freed_.upper_bound(address); freed != freed_.begin()) {
    const auto& [first, gone] = *std::prev(freed);
    if (address - first < gone.bytes)
      return format("0x%llx bytes into %s [0x%llx, 0x%llx), which was freed",
                    (unsigned long long)(address - first),
                    gone.label.empty() ? "the allocation" : gone.label.c_str(),
                    (unsigned long long)first, (unsigned long long)(first + gone.bytes));
  }
  return nearest(by_address_, address);
}

std::string GlobalMemory::describe(uint64_t address) const {
  std::shared_lock guard(lock_);
  return format("global address 0x%llx, ", (unsigned long long)address) + object_at(address);
}

void GlobalMemory::require_values(uint64_t address, uint64_t bytes, const char* who) const {
  const auto none = blank_.within(address, bytes);
  if (none.empty()) return;
  throw Fault(FaultKind::uninitialised,
              format("%s of %llu bytes reads the byte at ", who, (unsigned long long)bytes) +
                  describe(none[0].address) + ", which has no value: " + none[0].why);
}

uint8_t* GlobalMemory::at(uint64_t address, uint64_t bytes, uint64_t align, const char* who) const {
  std::shared_lock guard(lock_);
  if (align > 1 && address % align)
    throw Fault(
        FaultKind::misaligned_address,
        format("%s of %llu bytes at 0x%llx, which is no multiple of %llu: ", who,
               (unsigned long long)bytes, (unsigned long long)address, (unsigned long long)align) +
            object_at(address));
  auto it = by_address_.upper_bound(address);
  if (it != by_address_.begin()) {
    const Allocation& a = std::prev(it)->second;
    uint64_t offset = address - a.address;
    if (offset < a.bytes && bytes <= a.bytes - offset) return a.data.get() + offset;
  }
  throw Fault(
      FaultKind::illegal_address,
      format("%s of %llu bytes at 0x%llx, outside every allocation: %s", who,
             (unsigned long long)bytes, (unsigned long long)address, object_at(address).c_str()));
}

}  // namespace emu
