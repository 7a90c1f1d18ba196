// SPDX-License-Identifier: MIT
// cp.reduce.async.bulk (PTX ISA 9.7.9.25.4.2): an array in shared memory is combined with one in
// global memory or in the shared memory of a CTA of the cluster.
#include <cstring>

#include "tools/emulator/hardware/tma.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/bulk.h"
#include "tools/emulator/op/reduction.h"

namespace emu::ops {

namespace {

using glue::Target;
using glue::Where;

struct Source {
  Target from;
  uint32_t bytes;
};

Source source(Warp& w, const Instr& in, uint32_t lane, uint64_t to) {
  const Source s{glue::target(w, in.ops[1], lane, Where::own, in.opcode),
                 uint32_t(w.get(in.ops[2], lane))};
  check_bulk_copy(to, s.from.address, s.bytes);
  ++w.cta.counters.bulk_copies;
  w.cta.counters.bulk_bytes += s.bytes;
  return s;
}

Step to_global(Warp& w, const Instr& in, uint32_t active) {
  const uint32_t size = ptx::bits_of(in.type()) / 8;
  const Update f = reduction_of(in, in.type(), true);
  glue::each_lane(active, [&](uint32_t lane) {
    require_policy(w, in, lane);
    const uint64_t to = w.address(in.ops[0], lane);
    const Source s = source(w, in, lane, to);
    const Shipment shipment{s.from.address, s.bytes, {{to, s.bytes, 0, 1}}, Use::atomic};
    const auto write = [=](const SharedMemory& shared, const GlobalMemory& memory) {
      if (!s.bytes) return;
      uint8_t* there = memory.at(to, s.bytes, 16, "cp.reduce.async.bulk");
      memory.require_values(to, s.bytes, "cp.reduce.async.bulk");
      const uint8_t* here = shared.view(s.from.address, s.bytes, "cp.reduce.async.bulk");
      for (uint32_t i = 0; i < s.bytes; i += size) {
        uint64_t word = 0;
        std::memcpy(&word, here + i, size);
        update_global(there + i, size, f, word);
      }
    };
    send(w, in, 1u << lane, shipment, write);
  });
  return Step::next;
}

void update_shared(SharedMemory& shared, uint32_t address, const uint8_t* values, uint32_t bytes,
                   uint32_t size, Update f) {
  constexpr const char* who = "cp.reduce.async.bulk";
  for (uint32_t i = 0; i < bytes; i += size) {
    uint64_t old = 0, value = 0;
    shared.read(address + i, &old, size, size, who);
    std::memcpy(&value, values + i, size);
    const uint64_t now = f(old, value, 0);
    shared.write(address + i, &now, size, size, who);
  }
}

Step to_shared(Warp& w, const Instr& in, uint32_t active) {
  const uint32_t size = ptx::bits_of(in.type()) / 8;
  const Update f = reduction_of(in, in.type(), false);
  glue::each_lane(active, [&](uint32_t lane) {
    const Delivery d = deliveries(w, in, lane, in.ops[0], in.ops[3], nullptr)[0];
    const Source s = source(w, in, lane, d.data.address);
    const AsyncWork work(w, Work::copy, lane);
    const SharedMemory& source = work.reads(s.from, s.bytes);
    const auto update = [=, &source](SharedMemory& shared) {
      const uint8_t* values = source.view(s.from.address, s.bytes, "cp.reduce.async.bulk");
      update_shared(shared, d.data.address, values, s.bytes, size, f);
    };
    deliver(w, in, work, d, s.bytes, update, Use::atomic);
  });
  return Step::next;
}

}  // namespace

Exec bind_cp_reduce_async_bulk(const Instr& in, std::string&) {
  return in.has(Mod::bulk_group) ? to_global : to_shared;
}

}  // namespace emu::ops
