// SPDX-License-Identifier: MIT
// Who meets a remembered access.
#pragma once

#include "tools/emulator/order/party.h"
#include "tools/emulator/order/shadow.h"

namespace emu::order {

struct Issued {  // an operation
  Work work;
  uint8_t lane;
  uint16_t warp;
  uint32_t pc;
  Clock before = {}, before_strict = {}, before_fresh = {};  // copies: what its issuer had seen
  uint32_t agent = nobody, done = 0;                         // complete for threads that know this
  uint32_t read_agent = nobody, read_done = 0;  // its reads are: bulk groups with .read
  uint32_t pipe = nobody;                       // the thread's tcgen05 pipe, in order
  std::vector<size_t> bulk_reads = {};          // its GlobalOrder::BulkRead
  uint32_t one_with = 0;                        // lanes whose stores are one on hardware
};

enum class Space : uint8_t { shared, tensor, global };

constexpr uint32_t chunk_bytes = 16;  // of a Chunk of shared memory
constexpr uint16_t all_bytes = 0xFFFF;

constexpr bool generic_proxy(Work work) {
  return work == Work::cp_async || work == Work::store_async;
}

struct Viewer {
  const Party& party;    // the warp that accesses or issues
  const Knowledge* own;  // of its lane
  uint32_t warp;
  uint32_t lane;
  uint32_t active;
  const Issued* issued = nullptr;  // asynchronous work, if it is one
  Operation operation = Operation::none;
  Space space = Space::shared;
  Use use = Use::read;
  uint16_t mask = 0;
  Cta* cta = nullptr;  // whose memory
  uint16_t equal = 0;  // bytes of which a store leaves the value as it was stored before
};

}  // namespace emu::order
