// SPDX-License-Identifier: MIT
// See global_lanes.h.
#include "tools/emulator/machine/global_lanes.h"

#include <cstring>

namespace emu {

namespace {

constexpr uint64_t line_bytes = 128;

template <class T>
void store(uint8_t* p, const uint64_t* value) {
  __atomic_store_n(reinterpret_cast<T*>(p), T(*value), __ATOMIC_RELEASE);
}

void store(uint8_t* p, const uint64_t* value, uint32_t bytes) {
  switch (bytes) {
    case 1: return store<uint8_t>(p, value);
    case 2: return store<uint16_t>(p, value);
    case 4: return store<uint32_t>(p, value);
    default: return store<uint64_t>(p, value);
  }
}

}  // namespace

GlobalLanes::GlobalLanes(Warp& warp, const ptx::Operand& address, uint32_t active, uint32_t bytes)
    : warp_(warp), active_(active), bytes_(bytes) {
  fine_ = active && bytes <= most_bytes && std::has_single_bit(bytes) &&
          warp.has_base(address, active) && find(address);
}

bool GlobalLanes::find(const ptx::Operand& address) {
  uint64_t lane_address[32], lowest = ~0ull, highest = 0, bits = 0;
  const auto take = [&](uint32_t lane, uint64_t at) {
    lane_address[lane] = at;
    lowest = std::min(lowest, at);
    highest = std::max(highest, at);
    bits |= at;
  };
  const uint64_t offset = uint64_t(address.imm);
  if (const uint64_t* const base = warp_.base_row(address))
    for_lanes(active_, [&](uint32_t lane) { take(lane, base[lane] + offset); });
  else
    for_lanes(active_, [&, at = warp_.address(address, 0)](uint32_t lane) { take(lane, at); });
  base_ = lowest / line_bytes * line_bytes;
  end_ = highest + bytes_;
  constexpr uint64_t farthest = 1ull << 31;
  if (bits & (bytes_ - 1) || end_ < highest || end_ - base_ > farthest ||
      !in_one_allocation(lowest, end_))
    return false;
  uint8_t* const data = warp_.cached_data_ + (lowest - warp_.cached_begin_);
  for_lanes(active_, [&](uint32_t lane) {
    from_base_[lane] = uint32_t(lane_address[lane] - base_);
    at_[lane] = data + (lane_address[lane] - lowest);
  });
  return true;
}

// False, too, if any byte of global memory lacks a value.
bool GlobalLanes::in_one_allocation(uint64_t begin, uint64_t end) {
  if (address::space_of(begin) != ptx::Space::global) return false;
  const GlobalMemory& memory = warp_.cta.cluster.launch.memory.get(Teller{});
  if (memory.blank().any()) return false;
  const uint64_t frees = memory.frees();
  if (begin >= warp_.cached_begin_ && end <= warp_.cached_end_ && frees == warp_.cached_frees_)
    return true;
  const Allocation* const a = memory.find(begin);
  if (!a || end > a->address + a->bytes) return false;
  warp_.cached_frees_ = frees;
  warp_.cached_begin_ = a->address;
  warp_.cached_end_ = a->address + a->bytes;
  warp_.cached_data_ = a->data.get();
  return true;
}

bool GlobalLanes::is_constant(uint64_t begin, uint64_t end) const {
  const ptx::Module& module = *warp_.cta.cluster.launch.module;
  for (const uint32_t i : module.constants)
    if (const ptx::Variable& v = module.variables[i];
        begin < v.address + v.bytes && v.address < end)
      return true;
  return false;
}

bool GlobalLanes::read(Use use) {
  if (!fine_) return false;
  warp_.cta.cluster.observers.access(
      GlobalAccess{base_, from_base_, bytes_, use, active_, nullptr});
  warp_.cta.counters.global_load_bytes += uint64_t(std::popcount(active_)) * bytes_;
  return true;
}

bool GlobalLanes::write(const uint64_t* const* words, uint32_t bytes_each) {
  if (!fine_ || is_constant(base_, end_)) return false;
  uint8_t values[32 * most_bytes];
  for_lanes(active_, [&](uint32_t lane) {
    for (uint32_t e = 0; e * bytes_each < bytes_; ++e)
      memcpy(values + lane * bytes_ + e * bytes_each, &words[e][lane], bytes_each);
  });
  warp_.cta.cluster.observers.access(
      GlobalAccess{base_, from_base_, bytes_, Use::write, active_, values});
  for_lanes(active_, [&](uint32_t lane) {
    for (uint32_t e = 0; e * bytes_each < bytes_; ++e)
      store(at_[lane] + e * bytes_each, &words[e][lane], bytes_each);
  });
  warp_.cta.counters.global_store_bytes += uint64_t(std::popcount(active_)) * bytes_;
  return true;
}

}  // namespace emu
