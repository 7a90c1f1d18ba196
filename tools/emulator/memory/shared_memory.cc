// SPDX-License-Identifier: MIT
// One CTA's shared memory with its shadow.
#include "tools/emulator/memory/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/memory/global_memory.h"

namespace emu {

namespace {

// The first byte at `from` whose flag is set, or is not; nullptr: none.
const uint8_t* first_with(const uint8_t* from, uint32_t bytes, uint8_t flag, bool set) {
  constexpr uint64_t each = 0x0101010101010101;
  const uint8_t* const end = from + bytes;
  for (; end - from >= 8; from += 8) {
    uint64_t eight;
    memcpy(&eight, from, sizeof eight);
    if ((eight & each * flag) != (set ? 0 : each * flag)) break;
  }
  for (; from != end; ++from)
    if (bool(*from & flag) == set) return from;
  return nullptr;
}

}  // namespace

SharedMemory::SharedMemory(uint32_t bytes, uint32_t rank)
    : rank_(rank), data_(bytes), shadow_(bytes) {}

// Returns the index of the first byte.
uint32_t SharedMemory::check(uint32_t address, uint32_t bytes, uint32_t align,
                             const char* who) const {
  if (align > 1 && address % align)
    throw Fault(FaultKind::misaligned_address,
                format("%s of %u bytes at shared address 0x%x, which is no multiple of %u", who,
                       bytes, address, align),
                place_of(address));
  uint64_t end = uint64_t(window_start) + data_.size();
  if (address < window_start || uint64_t(address) + bytes > end)
    throw Fault(FaultKind::illegal_address,
                format("%s of %u bytes at shared address 0x%x, outside this CTA's shared memory "
                       "[0x%x, 0x%llx)",
                       who, bytes, address, window_start, (unsigned long long)end),
                place_of(address));
  return address - window_start;
}

void SharedMemory::unwritten(uint32_t address, uint32_t bytes, const char* who) const {
  throw Fault(FaultKind::uninitialised,
              format("%s of %u bytes reads the byte at shared address 0x%x, which %s", who, bytes,
                     address, why_none(address).c_str()),
              place_of(address));
}

void SharedMemory::touches_barrier(uint32_t address, uint32_t bytes, const char* who) const {
  throw Fault(FaultKind::barrier_misuse,
              format("%s of %u bytes touches the mbarrier at shared address 0x%x, an opaque object",
                     who, bytes, address & ~7u),
              place_of(address));
}

void SharedMemory::refuse_barriers(uint32_t first, uint32_t bytes, const char* who) const {
  if (const uint8_t* at = first_with(shadow_.data() + first, bytes, barrier, true))
    touches_barrier(window_start + uint32_t(at - shadow_.data()), bytes, who);
}

void SharedMemory::read(uint32_t address, void* to, uint32_t bytes, uint32_t align,
                        const char* who) const {
  uint32_t first = check(address, bytes, align, who);
  if (first_with(shadow_.data() + first, bytes, written, false))  // mbarriers are not written
    for (uint32_t i = first; i < first + bytes; ++i) {
      if (shadow_[i] & barrier) touches_barrier(window_start + i, bytes, who);
      if (!(shadow_[i] & written)) unwritten(window_start + i, bytes, who);
    }
  memcpy(to, &data_[first], bytes);
}

void SharedMemory::write(uint32_t address, const void* from, uint32_t bytes, uint32_t align,
                         const char* who) {
  uint32_t first = check(address, bytes, align, who);
  refuse_barriers(first, bytes, who);
  memcpy(data_.data() + first, from, bytes);
  std::fill_n(shadow_.begin() + first, bytes, uint8_t(written));
}

void SharedMemory::forget(uint32_t address, uint32_t bytes, const char* who, std::string why) {
  const uint32_t first = check(address, bytes, 1, who);
  refuse_barriers(first, bytes, who);
  std::fill_n(shadow_.begin() + first, bytes, uint8_t(0));
  if (!why.empty()) forgotten_[address] = {address + bytes, std::move(why)};
}

void SharedMemory::forget_blank(uint32_t address, const GlobalMemory& from, uint64_t there,
                                uint32_t bytes, const char* who) {
  for (const BlankBytes::Range& r : from.blank().within(there, bytes))
    forget(address + uint32_t(r.address - there), uint32_t(r.bytes), who,
           format("%s found none at global address 0x%llx: ", who, (unsigned long long)r.address) +
               r.why);
}

template <class F>
void SharedMemory::each_blank(uint32_t address, uint32_t bytes, const char* who, F f) const {
  const uint8_t* from = shadow_.data() + check(address, bytes, 1, who);
  const uint8_t* const end = from + bytes;
  while ((from = first_with(from, uint32_t(end - from), written, false))) {
    const uint8_t* behind = first_with(from, uint32_t(end - from), written, true);
    if (!behind) behind = end;
    const uint32_t at = window_start + uint32_t(from - shadow_.data());
    f(at, uint32_t(behind - from),
      format("%s of the byte at shared address 0x%x, which %s", who, at, why_none(at).c_str()));
    from = behind;
  }
}

void SharedMemory::hand_on_blank(uint32_t address, const GlobalMemory& to, uint64_t there,
                                 uint32_t bytes, const char* who) const {
  to.blank().remove(there, bytes);
  each_blank(address, bytes, who, [&](uint32_t at, uint32_t n, std::string why) {
    to.blank().add({there + (at - address), n, std::move(why)});
  });
}

void SharedMemory::hand_on_blank(uint32_t address, SharedMemory& to, uint32_t there, uint32_t bytes,
                                 const char* who) const {
  each_blank(address, bytes, who, [&](uint32_t at, uint32_t n, std::string why) {
    to.forget(there + (at - address), n, who, std::move(why));
  });
}

std::string SharedMemory::why_none(uint32_t address) const {
  const auto behind = forgotten_.upper_bound(address);
  if (behind == forgotten_.begin() || std::prev(behind)->second.end <= address)
    return "nobody has written";
  return "nobody has written a value to: " + std::prev(behind)->second.why;
}

const uint8_t* SharedMemory::view(uint32_t address, uint32_t bytes, const char* who) const {
  const uint8_t* bytes_there = view_any(address, bytes, who);
  const uint8_t* const all = shadow_.data();
  if (const uint8_t* none = first_with(all + address - window_start, bytes, written, false))
    unwritten(window_start + uint32_t(none - all), bytes, who);
  return bytes_there;
}

const uint8_t* SharedMemory::view_any(uint32_t address, uint32_t bytes, const char* who) const {
  uint32_t first = check(address, bytes, 1, who);
  refuse_barriers(first, bytes, who);
  return data_.data() + first;
}

bool SharedMemory::has_value(uint32_t address, uint32_t bytes, const char* who) const {
  uint32_t first = check(address, bytes, 1, who);
  return !first_with(shadow_.data() + first, bytes, written, false);
}

bool SharedMemory::holds(uint32_t address, const void* value, uint32_t bytes) const {
  if (address < window_start || address - window_start > data_.size() ||
      bytes > data_.size() - (address - window_start))
    return false;
  const uint32_t first = address - window_start;
  return memcmp(&data_[first], value, bytes) == 0 &&
         !first_with(shadow_.data() + first, bytes, written, false);
}

void SharedMemory::mark_mbarrier(uint32_t address, bool live) {
  uint32_t first = check(address, 8, 8, "mbarrier object");
  // After mbarrier.inval the bytes are free for any use but hold nothing (PTX ISA, mbarrier.inval).
  std::fill_n(shadow_.begin() + first, 8, uint8_t(live ? barrier : 0));
}

bool SharedMemory::is_mbarrier(uint32_t address) const {
  return address >= window_start && address - window_start < shadow_.size() &&
         (shadow_[address - window_start] & barrier);
}

}  // namespace emu
