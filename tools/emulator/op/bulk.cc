// SPDX-License-Identifier: MIT
// cp.async.bulk without a tensor map, and the bulk async-groups. Each copy takes effect on its own:
// two copies of one thread complete in any order.
#include "tools/emulator/op/bulk.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tools/emulator/hardware/tma.h"
#include "tools/emulator/op/binders.h"

namespace emu::ops {

using glue::Target;
using glue::Where;
using ptx::Instr;
using ptx::Mod;
using ptx::Step;

namespace {

uint32_t multicast_mask(Warp& warp, const Instr& in, uint32_t lane, const ptx::Operand& op) {
  const uint32_t mask = uint32_t(warp.get(op, lane)) & 0xFFFF;
  const size_t ctas = warp.cta.cluster.ctas.size();
  if (mask == 0 || mask >> ctas)
    throw Fault(FaultKind::illegal_instruction,
                format("%s with CTA mask 0x%x in a cluster of %zu", in.opcode, mask, ctas));
  return mask;
}

// .cta_group::2 may signal the other CTA of the destination's pair: the one whose parity the
// barrier's address has. Without it the barrier lies in the destination CTA, at the given offset.
uint32_t barrier_rank(const Instr& in, uint32_t destination, const Target& barrier,
                      bool multicast) {
  const uint32_t rank = barrier.cta->rank;
  if (in.has(Mod::cta_group_2)) {
    if (multicast || rank >> 1 == destination >> 1) return (destination & ~1u) | (rank & 1);
    throw Fault(
        FaultKind::illegal_instruction,
        format("%s.cta_group::2: the mbarrier is in CTA %u, not in the pair of the destination "
               "CTA %u",
               in.opcode, rank, destination));
  }
  if (multicast || rank == destination) return destination;
  throw Fault(FaultKind::illegal_instruction,
              format("%s: the mbarrier is in CTA %u and the destination in CTA %u; without "
                     ".cta_group::2 it has to be the same",
                     in.opcode, rank, destination));
}

}  // namespace

void require_policy(Warp& warp, const Instr& in, uint32_t lane) {
  if (in.has(Mod::L2_cache_hint))
    warp.get(in.ops[in.ops.size() - (in.has(Mod::cp_mask) ? 2 : 1)], lane);
}

std::vector<Delivery> deliveries(Warp& warp, const Instr& in, uint32_t lane,
                                 const ptx::Operand& destination, const ptx::Operand& barrier,
                                 const ptx::Operand* mask) {
  Cluster& cluster = warp.cta.cluster;
  const Where where = in.has(Mod::shared_cluster) ? Where::cluster : Where::own;
  const Target to = glue::target(warp, destination, lane, where, in.opcode);
  const Target bar = glue::target(warp, barrier, lane, Where::cluster, in.opcode);
  const uint32_t ranks = mask ? multicast_mask(warp, in, lane, *mask) : 1u << to.cta->rank;
  std::vector<Delivery> all;
  glue::each_lane(ranks, [&](uint32_t r) {
    const uint32_t signal = barrier_rank(in, r, bar, mask != nullptr);
    if (signal >= cluster.ctas.size())
      throw Fault(FaultKind::illegal_instruction, format("%s signals CTA %u of a cluster of %zu",
                                                         in.opcode, signal, cluster.ctas.size()));
    const Delivery d{{cluster.ctas[r].get(), to.address},
                     {cluster.ctas[signal].get(), bar.address}};
    d.barrier.cta->mbarriers.state(bar.address, in.opcode);
    all.push_back(d);
  });
  return all;
}

void deliver(Warp& warp, const Instr& in, const AsyncWork& work, const Delivery& d, uint32_t bytes,
             std::function<void(SharedMemory&)> write, Use use, uint32_t shared_bytes) {
  const Cta* from = &warp.cta;
  work.signals(d.barrier);
  SharedMemory& there = work.writes(d.data, std::max(bytes, shared_bytes), use);
  const char* who = in.opcode;
  glue::post(warp, warp.cta.cluster.async.new_chain(), in, [=, &there, write = std::move(write)] {
    glue::require_running(*from, *d.data.cta, who);
    glue::require_running(*from, *d.barrier.cta, who);
    write(there);
    work.complete_tx(d.barrier, bytes, who);
  });
}

namespace {

void add_values(Warp& warp, const ptx::Operand& op, uint32_t lane, std::vector<uint64_t>& values) {
  using Kind = ptx::Operand::Kind;
  if (op.kind == Kind::address) values.push_back(warp.address(op, lane));
  if (op.kind != Kind::address && op.kind != Kind::vector) values.push_back(warp.get(op, lane));
  for (const ptx::Operand& e : op.elements) add_values(warp, e, lane, values);
}

}  // namespace

std::vector<Issuers> issuers(Warp& warp, const Instr& in, uint32_t active) {
  std::vector<Issuers> all;
  std::map<std::vector<uint64_t>, size_t> known;
  glue::each_lane(active, [&](uint32_t lane) {
    std::vector<uint64_t> values;
    for (const ptx::Operand& op : in.ops) add_values(warp, op, lane, values);
    const auto [at, is_new] = known.emplace(std::move(values), all.size());
    if (is_new) all.push_back({lane, 0});
    all[at->second].lanes |= 1u << lane;
  });
  return all;
}

void send(Warp& warp, const Instr& in, uint32_t lanes, const Shipment& s,
          std::function<void(const SharedMemory&, const GlobalMemory&)> write) {
  Cta* cta = &warp.cta;
  std::vector<AsyncWork> all;
  CopyGroups::Handle handle = nullptr;
  const SharedMemory* here = nullptr;
  const GlobalMemory* there = nullptr;
  glue::each_lane(lanes, [&](uint32_t lane) {
    all.emplace_back(warp, Work::copy, lane);
    all.back().joins_bulk_group(lanes);
    here = &all.back().reads(Target{cta, s.from}, s.bytes);
    if (handle)
      cta->units.bulk.join(warp.thread(lane), handle);
    else
      handle = cta->units.bulk.issue(warp.thread(lane));
  });
  for (const AsyncWork& work : all) there = &work.writes(s.rows, s.use);
  glue::post(warp, cta->cluster.async.new_chain(), in, [=, write = std::move(write)] {
    write(*here, *there);
    handle->read = handle->done = true;
  });
}

namespace {

void count(Warp& warp, uint64_t bytes) {
  ++warp.cta.counters.bulk_copies;
  warp.cta.counters.bulk_bytes += bytes;
}

Step load(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    require_policy(warp, in, lane);
    const uint64_t from = warp.address(in.ops[1], lane);
    const uint32_t bytes = uint32_t(warp.get(in.ops[2], lane));
    const bool multicast = in.has(Mod::multicast_cluster);
    for (const Delivery& d :
         deliveries(warp, in, lane, in.ops[0], in.ops[3], multicast ? &in.ops[4] : nullptr)) {
      check_bulk_copy(d.data.address, from, bytes);
      count(warp, bytes);
      if (!warp.waited_for_grids) warp.cta.counters.early_bytes += bytes;
      const AsyncWork work(warp, Work::copy, lane);
      const GlobalMemory& memory = work.reads({{from, bytes, 0, 1}});
      deliver(warp, in, work, d, bytes, [=, &memory](SharedMemory& shared) {
        if (!bytes) return;
        shared.write(d.data.address, memory.at(from, bytes, 16, "cp.async.bulk"), bytes, 16,
                     "cp.async.bulk");
        shared.forget_blank(d.data.address, memory, from, bytes, "cp.async.bulk");
      });
    }
  });
  return Step::next;
}

// To a CTA of the cluster, often a peer.
Step copy(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    const Target from = glue::target(warp, in.ops[1], lane, Where::own, in.opcode);
    const uint32_t bytes = uint32_t(warp.get(in.ops[2], lane));
    const Delivery d = deliveries(warp, in, lane, in.ops[0], in.ops[3], nullptr)[0];
    check_bulk_copy(d.data.address, from.address, bytes);
    count(warp, bytes);
    if (d.data.cta != &warp.cta) warp.cta.counters.cluster_bytes += bytes;
    const AsyncWork work(warp, Work::copy, lane);
    const SharedMemory& source = work.reads(from, bytes);
    deliver(warp, in, work, d, bytes, [=, &source](SharedMemory& shared) {
      if (!bytes) return;
      shared.write(d.data.address, source.view_any(from.address, bytes, "cp.async.bulk"), bytes, 16,
                   "cp.async.bulk");
      source.hand_on_blank(from.address, shared, d.data.address, bytes, "cp.async.bulk");
    });
  });
  return Step::next;
}

Step store(Warp& warp, const Instr& in, uint32_t active) {
  for (const auto& [lane, lanes] : issuers(warp, in, active)) {
    require_policy(warp, in, lane);
    const uint64_t to = warp.address(in.ops[0], lane);
    const Target from = glue::target(warp, in.ops[1], lane, Where::own, in.opcode);
    const uint32_t bytes = uint32_t(warp.get(in.ops[2], lane));
    // .cp_mask: bit i says whether byte i of every 16 is written.
    const uint32_t mask = in.has(Mod::cp_mask) ? uint32_t(warp.get(in.ops.back(), lane)) : 0xFFFF;
    check_bulk_copy(to, from.address, bytes);
    count(warp, bytes);
    const Shipment shipment{from.address, bytes, {{to, bytes, 0, 1}}};
    send(warp, in, lanes, shipment, [=](const SharedMemory& shared, const GlobalMemory& memory) {
      if (!bytes) return;
      uint8_t* out = memory.at(to, bytes, 16, "cp.async.bulk");
      const uint8_t* source = shared.view_any(from.address, bytes, "cp.async.bulk");
      const auto hand_on = [&](uint32_t first, uint32_t n) {
        std::memcpy(out + first, source + first, n);
        shared.hand_on_blank(from.address + first, memory, to + first, n, "cp.async.bulk");
      };
      if (mask == 0xFFFF) return hand_on(0, bytes);
      for (uint32_t i = 0; i < bytes; ++i)
        if (mask >> i % 16 & 1) hand_on(i, 1);
    });
  }
  return Step::next;
}

// A hint: nothing happens, but its operands need values, and it counts as a copy, to L2.
Step prefetch(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    require_policy(warp, in, lane);
    const uint32_t bytes = uint32_t(warp.get(in.ops[1], lane));
    check_bulk_copy(0, warp.address(in.ops[0], lane), bytes);
    count(warp, bytes);
    if (!warp.waited_for_grids) warp.cta.counters.early_bytes += bytes;
  });
  return Step::next;
}

Step commit_group(Warp& warp, const Instr&, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    warp.cta.units.bulk.commit(warp.thread(lane));
    warp.cta.cluster.observers.tell(event::GroupCommitted{Work::copy, lane});
  });
  return Step::next;
}

Step wait_group(Warp& warp, const Instr& in, uint32_t active) {
  bool done = true;
  glue::each_lane(active, [&](uint32_t lane) {
    done = done && warp.cta.units.bulk.complete(
                       warp.thread(lane), uint32_t(warp.get(in.ops[0], lane)), in.has(Mod::read));
  });
  if (!done) {
    warp.waiting = [] { return "bulk async-groups"; };
    return Step::blocked;
  }
  glue::each_lane(active, [&](uint32_t lane) {
    const uint32_t allowed = uint32_t(warp.get(in.ops[0], lane));
    warp.cta.cluster.observers.tell(
        event::GroupsAwaited{Work::copy, lane, allowed, in.has(Mod::read)});
  });
  return Step::next;
}

}  // namespace

ptx::Exec bind_cp_async_bulk(const Instr& in, std::string&) {
  if (in.has(Mod::bulk_group)) return store;
  return in.has(Mod::global) ? load : copy;
}
ptx::Exec bind_cp_async_bulk_prefetch(const Instr&, std::string&) { return prefetch; }
ptx::Exec bind_cp_async_bulk_commit_group(const Instr&, std::string&) { return commit_group; }
ptx::Exec bind_cp_async_bulk_wait_group(const Instr&, std::string&) { return wait_group; }

}  // namespace emu::ops
