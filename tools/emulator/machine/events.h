// SPDX-License-Identifier: MIT
// What an observer of the machine is told (observer.h), besides instructions: accesses to memory,
// and the events that order them.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "tools/emulator/memory/global_memory.h"

namespace emu {

class Cta;

// ---- accesses -----------------------------------------------------------------------------------

enum class Use : uint8_t {
  read,
  write,
  atomic,         // an update, or a store that is relaxed or stronger
  strong_read,    // a load that is relaxed or stronger
  constant_read,  // ld.global.nc: nothing writes there as long as the grid runs
};
constexpr bool is_read(Use use) { return use != Use::write && use != Use::atomic; }
constexpr bool is_strong(Use use) { return use == Use::atomic || use == Use::strong_read; }

enum class Scope : uint8_t { cta, cluster, gpu };

constexpr uint8_t every_lane = 32;  // the warp as one: tcgen05.alloc, collective operations

// By a lane of the instruction that executes, before the bytes are accessed.
struct LaneAccess {
  Cta* cta;  // whose shared memory; nullptr: global memory
  uint64_t address;
  uint32_t bytes;
  Use use;
  uint32_t lane;
  bool same;          // in shared memory: a store of the value that is there
  const void* value;  // in global memory: what a plain store writes
};

// By lanes of the instruction that executes: each its own bytes of one CTA's shared memory, aligned
// to their number, which is a power of two up to 16.
struct WarpAccess {
  Cta* cta;
  const uint32_t* address;  // by lane
  uint32_t bytes;           // of each
  Use use;
  uint32_t lanes;
  uint32_t same;  // of them, those that store the value that is there
};

// The same in global memory, of a plain load or store, all in one allocation.
struct GlobalAccess {
  uint64_t base;            // of all, at a multiple of 128
  const uint32_t* address;  // by lane, from `base` on
  uint32_t bytes;           // of each
  Use use;
  uint32_t lanes;
  const uint8_t* values;  // what a store writes, the bytes of a lane after those of the one before
};

// The kinds of asynchronous work that the ordering checks tell apart.
enum class Work : uint8_t {
  copy,         // bulk and tensor copies: async proxy
  cp_async,     // cp.async: generic proxy
  store_async,  // st.async, red.async: generic proxy
  mma,          // tcgen05.mma
  tensor_copy,  // tcgen05.cp
  tensor_ld,    // tcgen05.ld
  tensor_st,    // tcgen05.st
  wgmma,        // wgmma.mma_async of a warpgroup
  commit,       // tcgen05.commit: an arrival when the thread's earlier mma and cp are over
  copy_arrive,  // cp.async.mbarrier.arrive: the same of its cp.async
};

// A piece of asynchronous work, by the order in which a cluster's are issued.
enum class Operation : uint32_t { none = ~0u };

// What a piece of asynchronous work accesses, told when it is issued.
namespace reach {
struct Shared {
  Cta& cta;
  uint32_t address, bytes;
};
struct Chunks {  // of 16 bytes of shared memory
  Cta& cta;
  const std::vector<uint32_t>& addresses;
};
struct Columns {  // of tensor memory; `groups` has a bit per 16 lanes
  Cta& cta;
  uint32_t column, count;
  uint16_t groups;
};
}  // namespace reach
using Reach = std::variant<reach::Shared, reach::Chunks, reach::Columns, Rows>;

// ---- events -------------------------------------------------------------------------------------

namespace event {

// Events of tensor maps and tensor memory.
struct MapRead {  // through the tensormap proxy
  uint64_t address;
  uint32_t lane;
};
struct ColumnsFreed {
  Cta& cta;
  uint32_t column, count;
};

// Asynchronous work is over, or was waited for.
struct BytesArrived {  // those of `op`, at an mbarrier whose current phase is `phase`
  Operation op;
  Cta& cta;
  uint32_t barrier;
  uint64_t phase;
};
// `op` belongs to the open bulk groups of the lanes, which execute the same store: by the manual
// each lane issues one of its own, on hardware they issue one.
struct JoinedBulkGroup {
  Operation op;
  uint32_t lanes;
};
struct GroupCommitted {  // of cp.async or of bulk copies
  Work work;
  uint32_t lane;
};
struct GroupsAwaited {  // except for the latest `allowed`
  Work work;
  uint32_t lane, allowed;
  bool only_reads;
};
struct CopiesAwaited {  // cp.async, committed or not
  uint32_t lane;
};
struct TensorAwaited {  // tcgen05.wait::ld, ::st
  Work work;
};
struct LoadUsed {};     // all registers of the oldest tcgen05.ld not waited for were used
struct WgmmasAwaited {  // of the warpgroup's operations, the first `end`
  uint32_t end;
};

// mbarriers.
struct BarrierInit {
  Cta& cta;
  uint32_t address, lane;  // or every_lane
};
struct BarrierInval {
  Cta& cta;
  uint32_t address;
};
struct BarrierUse {  // any access to an mbarrier, by `op` or else by lanes: must follow the init
  Cta& cta;
  uint32_t address, lanes;
  Operation op = Operation::none;
};
struct Arrival {
  Cta& cta;
  uint32_t address;
  uint64_t phase;
  uint32_t lanes;
  Scope scope;
  bool relaxed;
};
struct WorkArrival {  // of Work::commit, Work::copy_arrive
  Operation op;
  Cta& cta;
  uint32_t address;
  uint64_t phase;
  bool last;  // of the op's arrivals
};
struct PhaseOver {  // a wait has answered that the phases before `phase` are over
  Cta& cta;
  uint32_t address;
  uint64_t phase;
  uint32_t lanes;
  Scope scope;
  bool relaxed;
  uint64_t suspended_in;  // the phase in which a wait by parity was suspended; 0: in the first one,
                          // or never
};

// Barriers of CTA, cluster and warp.
struct NamedArrival {
  uint32_t id;
  uint64_t ticket;
};
struct NamedPassed {
  uint32_t id;
  uint64_t ticket;
};
struct ClusterArrival {
  uint64_t ticket;
  bool relaxed;
};
struct ClusterPassed {
  uint64_t ticket;
};
struct WarpSync {
  uint32_t lanes;
};
struct Converged {  // the lanes stand together at an instruction that is .sync or .aligned
  uint32_t lanes;
};

// A lane's store or update of a word (.release or `relaxed`), and a lane's load of one (.acquire or
// `relaxed`).
struct Released {
  Cta* cta;  // whose shared memory; nullptr: global memory
  uint64_t address;
  uint32_t lane;
  Scope scope;
  bool relaxed;
};
struct Acquired {
  Cta* cta;
  uint64_t address;
  uint32_t lane;
  Scope scope;
  bool relaxed;
};

// Fences.
struct Fence {
  Scope scope;
};
struct ProxyFence {
  bool shared, global;
};
struct MapFence {
  uint64_t address;
  uint32_t lanes;
};
struct InitFence {};
struct TensorFenceBefore {};
struct TensorFenceAfter {};

// Grids.
struct DependentsLaunched {};  // griddepcontrol.launch_dependents
struct GridsOver {};           // griddepcontrol.wait

}  // namespace event

using Event =
    std::variant<event::MapRead, event::ColumnsFreed, event::BytesArrived, event::JoinedBulkGroup,
                 event::GroupCommitted, event::GroupsAwaited, event::CopiesAwaited,
                 event::TensorAwaited, event::LoadUsed, event::WgmmasAwaited, event::BarrierInit,
                 event::BarrierInval, event::BarrierUse, event::Arrival, event::WorkArrival,
                 event::PhaseOver, event::NamedArrival, event::NamedPassed, event::ClusterArrival,
                 event::ClusterPassed, event::WarpSync, event::Converged, event::Released,
                 event::Acquired, event::Fence, event::ProxyFence, event::MapFence,
                 event::InitFence, event::TensorFenceBefore, event::TensorFenceAfter,
                 event::DependentsLaunched, event::GridsOver>;

}  // namespace emu
