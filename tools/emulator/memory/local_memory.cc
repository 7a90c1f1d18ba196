// SPDX-License-Identifier: MIT
// The .local memory of one warp's threads.
#include "tools/emulator/memory/local_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/emulator/base/fault.h"

namespace emu {

// Returns the index of the first byte.
size_t LocalMemory::check(uint32_t lane, uint64_t offset, uint32_t bytes, uint32_t align) const {
  if (align > 1 && offset % align)
    throw Fault(FaultKind::misaligned_address,
                format("access of %u bytes at local address 0x%llx, which is no multiple of %u",
                       bytes, (unsigned long long)offset, align));
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw Fault(FaultKind::illegal_address,
                format("access of %u bytes at local address 0x%llx; the thread has %u bytes", bytes,
                       (unsigned long long)offset, bytes_));
  return size_t(lane) * bytes_ + offset;
}

void LocalMemory::read(uint32_t lane, uint64_t offset, void* to, uint32_t bytes,
                       uint32_t align) const {
  size_t first = check(lane, offset, bytes, align);
  for (size_t i = first; i < first + bytes; ++i)
    if (written_.empty() || !written_[i])
      throw Fault(
          FaultKind::uninitialised,
          format("load of %u bytes reads the byte at local address 0x%llx, which the thread "
                 "has not written",
                 bytes, (unsigned long long)(offset + (i - first))));
  memcpy(to, &data_[first], bytes);
}

void LocalMemory::write(uint32_t lane, uint64_t offset, const void* from, uint32_t bytes,
                        uint32_t align) {
  size_t first = check(lane, offset, bytes, align);
  if (data_.empty()) data_.resize(size_t(bytes_) * 32), written_.resize(size_t(bytes_) * 32);
  memcpy(data_.data() + first, from, bytes);
  std::fill_n(written_.begin() + ptrdiff_t(first), bytes, uint8_t(1));
}

void LocalMemory::reserve(uint32_t bytes_per_thread) {
  if (bytes_per_thread <= bytes_) return;
  const uint32_t old = std::exchange(bytes_, std::max(bytes_per_thread, 2 * bytes_));
  if (data_.empty()) return;
  std::vector<uint8_t> data(size_t(bytes_) * 32), written(size_t(bytes_) * 32);
  for (size_t lane = 0; lane < 32; ++lane) {
    std::copy_n(data_.begin() + ptrdiff_t(lane * old), old,
                data.begin() + ptrdiff_t(lane * bytes_));
    std::copy_n(written_.begin() + ptrdiff_t(lane * old), old,
                written.begin() + ptrdiff_t(lane * bytes_));
  }
  data_ = std::move(data);
  written_ = std::move(written);
}

void LocalMemory::copy(uint32_t lane, uint64_t from, uint64_t to, uint32_t bytes) {
  const size_t source = check(lane, from, bytes, 1), target = check(lane, to, bytes, 1);
  if (written_.empty()) return;
  memcpy(&data_[target], &data_[source], bytes);
  memcpy(&written_[target], &written_[source], bytes);
}

bool LocalMemory::holds(uint32_t lane, uint64_t offset, uint32_t bytes) const {
  const size_t first = check(lane, offset, bytes, 1);
  return !written_.empty() && !memchr(&written_[first], 0, bytes);
}

void LocalMemory::forget(uint32_t lane, uint64_t offset, uint32_t bytes) {
  const size_t first = check(lane, offset, bytes, 1);
  if (!written_.empty()) std::fill_n(written_.begin() + ptrdiff_t(first), bytes, uint8_t(0));
}

}  // namespace emu
