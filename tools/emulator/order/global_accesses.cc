// SPDX-License-Identifier: MIT
// Accesses to global memory, which all clusters of the grid share. See accesses.h.
#include "tools/emulator/order/accesses.h"

namespace emu::order {

namespace {

// Keeps the stored bytes of a chunk at `begin`. Returns the mask of the bytes that were stored with
// the same value before. The comparison is with this copy and not with the memory itself, because
// the memory depends on which host thread is faster.
uint16_t store_last(uint8_t* last, uint64_t begin, uint16_t mask, uint64_t address,
                    const void* value) {
  uint16_t equal = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    if (!(mask >> i & 1)) continue;
    const uint8_t byte = static_cast<const uint8_t*>(value)[begin + i - address];
    equal |= uint16_t(uint32_t(last[i] == byte) << i);
    last[i] = byte;
  }
  return equal;
}

}  // namespace

void Accesses::global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, const void* value) {
  if (!bytes) return;
  Viewer v = operations_.viewer(lane);
  v.space = Space::global;
  Access a = access(lane, use);
  a.cluster = now_.serial;
  earlier_grids_.meet({address, bytes, 0, 1}, v, use);
  GlobalOrder& order = global_;
  order.each(near_, address, bytes, !is_read(use),
             [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t* last) {
               a.mask = mask;
               if (value) v.equal = store_last(last, number * 16, mask, address, value);
               touch(chunk, a, v, number);
             });
  if (!is_read(use)) meet_bulk_reads(address, bytes, a, v);
}

void Accesses::global(Operation op, const Rows& rows, Use use) {
  if (!rows.bytes) return;
  GlobalOrder& order = global_;
  Issued& o = operations_.issued(op);
  Viewer v = operations_.viewer(op);
  v.space = Space::global;
  Access a = access(v.lane, use);
  a.cluster = now_.serial;
  a.async = true;
  a.agent = o.agent;
  a.time = o.done;
  earlier_grids_.meet(rows, v, use);
  if (is_read(use) && o.work == Work::copy) {
    o.bulk_reads.push_back(order.add(rows, a));
    order.each_written(rows, [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
      a.mask = mask;
      touch(chunk, a, v, number, false);
    });
    return;
  }
  for (uint32_t i = 0; i < rows.count; ++i) {
    const uint64_t address = rows.address + i * rows.stride;
    order.each(near_, address, rows.bytes, !is_read(use),
               [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
                 a.mask = mask;
                 touch(chunk, a, v, number);
               });
    if (!is_read(use)) meet_bulk_reads(address, rows.bytes, a, v);
  }
}

void Accesses::tensor_map(uint64_t address, uint32_t lane) {
  Viewer v = operations_.viewer(lane);
  v.space = Space::global;
  const auto look = [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
    v.mask = mask;
    chunk.each([&](const Access& old) {
      if (is_read(old.use) || !(old.mask & mask)) return;
      Reason reason = verdict_.judge(old, v);
      if (reason == Reason::ordered && !old.async && !verdict_.mapped(old, v, address))
        reason = Reason::map_fence;
      if (reason != Reason::ordered) reporter_.found(reason, old, v, number);
    });
  };
  constexpr uint64_t map_bytes = 128;
  global_.each_written({address, map_bytes, 0, 1}, look);
}

void Accesses::meet_bulk_reads(uint64_t address, uint64_t bytes, const Access& a, Viewer v) {
  v.use = a.use;
  global_.each_read(address, bytes, [&](const Access& old, uint64_t chunk, uint16_t mask) {
    v.mask = mask;
    const Reason reason = verdict_.judge_far(old, v);
    if (reason != Reason::ordered) reporter_.found(reason, old, v, chunk);
  });
}

}  // namespace emu::order
