// SPDX-License-Identifier: MIT
// One CTA's shared memory with a shadow: which bytes were written, which belong to an mbarrier.
//
// Addresses here are CTA-relative .shared addresses without rank bits: the window starts at 0x400
// (what ptxas and the hardware use), so offset 0 of the first variable is address 0x400.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace emu {

class GlobalMemory;

class SharedMemory {
 public:
  static constexpr uint32_t window_start = 0x400;
  static constexpr uint32_t rank_shift = 24;  // a cluster rank sits in address bits 24 and up

  // Usable bytes after window_start, of the CTA of that rank.
  explicit SharedMemory(uint32_t bytes, uint32_t rank = 0);

  // All throw Fault (illegal_address, misaligned_address, uninitialised, barrier_misuse); `who`
  // names the access for the report. align 0 = not checked. Accesses to bytes of a live mbarrier
  // are faults.
  void read(uint32_t address, void* to, uint32_t bytes, uint32_t align, const char* who) const;
  void write(uint32_t address, const void* from, uint32_t bytes, uint32_t align, const char* who);

  // Marks these bytes as uninitialised. `why`: what stored an undefined value there, for the report
  // if somebody reads them.
  void forget(uint32_t address, uint32_t bytes, const char* who, std::string why = {});
  // After a copy from global address `there`: marks the bytes as uninitialised that are blank
  // there.
  void forget_blank(uint32_t address, const GlobalMemory& from, uint64_t there, uint32_t bytes,
                    const char* who);
  // After a copy to global address `there`: marks the bytes as blank there that are uninitialised
  // here.
  void hand_on_blank(uint32_t address, const GlobalMemory& to, uint64_t there, uint32_t bytes,
                     const char* who) const;
  // The same after a copy within shared memory, to this CTA or another.
  void hand_on_blank(uint32_t address, SharedMemory& to, uint32_t there, uint32_t bytes,
                     const char* who) const;
  std::string why_none(uint32_t address) const;  // "nobody has written it", and more if known

  // A checked view of initialised bytes for operand reads by the tensor core.
  const uint8_t* view(uint32_t address, uint32_t bytes, const char* who) const;
  // The same without the check that they are initialised, for tcgen05.cp, which copies that mark,
  // too. has_value: whether all of them are initialised.
  const uint8_t* view_any(uint32_t address, uint32_t bytes, const char* who) const;
  bool has_value(uint32_t address, uint32_t bytes, const char* who) const;

  // Whether memory has these bytes already. False outside, and if any byte is uninitialised.
  bool holds(uint32_t address, const void* value, uint32_t bytes) const;

  // A pointer to the bytes if the access needs no further check. nullptr if read() or write() must
  // decide: outside, at an mbarrier, or, for readable(), if a byte is uninitialised. `bytes` is 1,
  // 2, 4, 8 or 16, or the sum of lanes whose bytes follow each other.
  const uint8_t* readable(uint32_t address, uint32_t bytes) const {
    return inside(address, bytes) && every(address, bytes, written, written)
               ? &data_[address - window_start]
               : nullptr;
  }
  uint8_t* writable(uint32_t address, uint32_t bytes) {
    return inside(address, bytes) && every(address, bytes, barrier, 0)
               ? &data_[address - window_start]
               : nullptr;
  }
  void have_values(uint32_t address, uint32_t bytes) {  // writable(), and written since
    memset(&shadow_[address - window_start], written, bytes);
  }

  void mark_mbarrier(uint32_t address, bool live);  // 8 bytes
  bool is_mbarrier(uint32_t address) const;

  uint32_t bytes() const { return uint32_t(data_.size()); }

 private:
  enum : uint8_t { written = 1, barrier = 2 };
  uint32_t check(uint32_t address, uint32_t bytes, uint32_t align, const char* who) const;
  bool inside(uint32_t address, uint32_t bytes) const {
    return address >= window_start &&
           uint64_t(address) + bytes <= uint64_t(window_start) + data_.size();
  }
  // Whether of `flags` exactly `wanted` are set for every byte. `bytes` is 1, 2, 4 or a multiple of
  // 8.
  bool every(uint32_t address, uint32_t bytes, uint8_t flags, uint8_t wanted) const {
    constexpr uint64_t each = 0x0101010101010101;
    const uint8_t* const s = &shadow_[address - window_start];
    const auto differs = [=](const uint8_t* from, uint32_t n) {
      uint64_t there = each * wanted;
      memcpy(&there, from, n);
      return (there & each * flags) != each * wanted;
    };
    if (bytes > 8) {
      bool any = false;
      for (uint32_t i = 0; i < bytes; i += 8) any |= differs(s + i, 8);
      return !any;
    }
    switch (bytes) {
      case 8: return !differs(s, 8);
      case 4: return !differs(s, 4);
      case 2: return !differs(s, 2);
      default: return !differs(s, 1);
    }
  }
  template <class F>  // f(address, bytes, why) for each run of bytes without a value
  void each_blank(uint32_t address, uint32_t bytes, const char* who, F f) const;
  int64_t place_of(uint32_t address) const { return address | int64_t(rank_) << rank_shift; }
  void refuse_barriers(uint32_t first, uint32_t bytes, const char* who) const;
  [[noreturn]] void unwritten(uint32_t address, uint32_t bytes, const char* who) const;
  [[noreturn]] void touches_barrier(uint32_t address, uint32_t bytes, const char* who) const;
  const uint32_t rank_;
  std::vector<uint8_t> data_;
  std::vector<uint8_t> shadow_;  // a byte per byte: written | barrier
  struct Forgotten {
    uint32_t end;
    std::string why;
  };
  std::map<uint32_t, Forgotten> forgotten_;  // bytes overwritten with no value, by first address
};

}  // namespace emu
