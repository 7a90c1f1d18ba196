// SPDX-License-Identifier: MIT
// See shared_lanes.h.
#include "tools/emulator/machine/shared_lanes.h"

#include <cstring>

namespace emu {

SharedLanes::SharedLanes(Warp& warp, const ptx::Operand& address, uint32_t active, uint32_t bytes)
    : warp_(warp), active_(active), bytes_(bytes) {
  if (bytes <= most_bytes && std::has_single_bit(bytes) && warp.has_base(address, active))
    find(address);
}

void SharedLanes::find(const ptx::Operand& address) {
  const uint64_t own = uint64_t(warp_.cta.rank) << SharedMemory::rank_shift;
  uint64_t misfits = 0;
  const auto take = [&](uint32_t lane, uint64_t at) {
    at_[lane] = uint32_t(at - own);
    misfits |= (at - own) >> SharedMemory::rank_shift | (at & (bytes_ - 1));
  };
  const uint64_t offset = uint64_t(address.imm);
  if (const uint64_t* const base = warp_.base_row(address))
    for_lanes(active_, [&](uint32_t lane) { take(lane, base[lane] + offset); });
  else
    for_lanes(active_, [&, at = warp_.address(address, 0)](uint32_t lane) { take(lane, at); });
  fine_ = !misfits;
  uint32_t gaps = ~active_;
  if (!gaps)
    for (uint32_t lane = 0; lane < 32; ++lane) gaps |= (at_[lane] - at_[0]) ^ lane * bytes_;
  in_a_row_ = !gaps;
}

bool SharedLanes::read() {
  if (!fine_) return false;
  const SharedMemory& shared = warp_.cta.shared(Teller{});
  bool all = true;
  if (in_a_row_) {
    const uint8_t* const row = shared.readable(at_[0], 32 * bytes_);
    for (uint32_t lane = 0; lane < 32; ++lane) from_[lane] = row + lane * bytes_;
    all = row != nullptr;
  } else {
    for_lanes(active_, [&](uint32_t lane) {
      from_[lane] = shared.readable(at_[lane], bytes_);
      all = all && from_[lane];
    });
  }
  if (all) warp_.cta.cluster.observers.access({&warp_.cta, at_, bytes_, Use::read, active_, 0});
  return all;
}

// Stores the words of all lanes. Returns the lanes whose word was in memory already.
template <class T>
uint32_t SharedLanes::write_row(const uint64_t* values, uint8_t* to) {
  T old[32], stored[32];
  memcpy(old, to, sizeof old);
  for (uint32_t lane = 0; lane < 32; ++lane) stored[lane] = T(values[lane]);
  memcpy(to, stored, sizeof stored);
  uint32_t same = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) same |= uint32_t(old[lane] == stored[lane]) << lane;
  return same;
}

bool SharedLanes::write_lanes(const uint64_t* const* words, uint32_t bytes_each, uint32_t* same) {
  SharedMemory& shared = warp_.cta.shared(Teller{});
  uint8_t* to[32];
  bool all = true;
  for_lanes(active_, [&](uint32_t lane) {
    to[lane] = shared.writable(at_[lane], bytes_);
    all = all && to[lane];
  });
  if (!all) return false;
  for_lanes(active_, [&](uint32_t lane) {
    uint8_t stored[most_bytes];
    for (uint32_t e = 0; e * bytes_each < bytes_; ++e)
      memcpy(stored + e * bytes_each, &words[e][lane], bytes_each);
    *same |= uint32_t(shared.holds(at_[lane], stored, bytes_)) << lane;
    memcpy(to[lane], stored, bytes_);
    shared.have_values(at_[lane], bytes_);
  });
  return true;
}

// The bytes are stored before the observers hear of them: if lanes store to the same bytes, a
// higher lane is compared with what the lower one stored.
bool SharedLanes::write(const uint64_t* const* words, uint32_t bytes_each) {
  if (!fine_) return false;
  SharedMemory& shared = warp_.cta.shared(Teller{});
  uint32_t same = 0;
  // Where all bytes have a value already.
  const bool row = in_a_row_ && bytes_ == bytes_each && (bytes_ == 4 || bytes_ == 8) &&
                   shared.readable(at_[0], 32 * bytes_);
  if (row) {
    uint8_t* const to = shared.writable(at_[0], 32 * bytes_);
    same = bytes_ == 4 ? write_row<uint32_t>(words[0], to) : write_row<uint64_t>(words[0], to);
  } else if (!write_lanes(words, bytes_each, &same)) {
    return false;
  }
  warp_.cta.cluster.observers.access({&warp_.cta, at_, bytes_, Use::write, active_, same});
  return true;
}

}  // namespace emu
