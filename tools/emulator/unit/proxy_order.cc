// SPDX-License-Identifier: MIT
// See proxy_order.h.
#include "proxy_order.h"

#include "../fault.h"

namespace emu {

void ProxyOrder::generic_write(uint32_t address, uint32_t bytes) {
  const size_t last = (address + bytes - 1) / 16;
  if (last >= stored_.size()) stored_.resize(last + 1);
  for (size_t i = address / 16; i <= last; ++i) stored_[i] = fences_;
}

void ProxyOrder::async_write(uint32_t address, uint32_t bytes) {
  for (size_t i = address / 16; i < stored_.size() && i * 16 < uint64_t(address) + bytes; ++i)
    stored_[i] = 0;
}

void ProxyOrder::check_chunk(uint32_t address, const char* who) const {
  const size_t i = address / 16;
  if (i < stored_.size() && stored_[i] == fences_)
    throw Fault(FaultKind::ordering,
                format("%s reads shared address 0x%x, which an ordinary store wrote, without a "
                       "fence.proxy.async behind the store",
                       who, address));
}

void ProxyOrder::check_chunks_read(const std::vector<uint32_t>& addresses, const char* who) const {
  for (uint32_t a : addresses) check_chunk(a, who);
}

void ProxyOrder::check_read(uint32_t address, uint32_t bytes, const char* who) const {
  for (uint32_t at = 0; at < bytes; at += 16) check_chunk(address + at, who);
}

}  // namespace emu
