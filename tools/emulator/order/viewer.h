// SPDX-License-Identifier: MIT
// Who meets a remembered access, and what may be wrong between the two.
#pragma once

#include "tools/emulator/order/hazards.h"

namespace emu {

enum class Hazards::Reason : uint8_t {
  ordered,
  unordered,              // no synchronisation on the way
  relaxed_barrier,        // in one CTA: a cluster barrier, arrived at without release
  released_apart,         // another lane of its warp has handed on, which did not know of it
  waited_apart,           // another lane of this warp knows it
  incomplete,             // asynchronous work whose completion is not known
  incomplete_far,         // the same in global memory
  proxy,                  // an ordinary store that the async proxy may not see
  proxy_overwrite,        // the same, overwritten
  copied_proxy,           // what cp.async wrote, which is the generic proxy too
  same_value,             // unordered stores of one value
  weak_flag,              // a plain store beside strong loads
  scope,                  // an mbarrier's .cta scope between two CTAs
  scope_of_store,         // the same, for the value of an ordinary store or a cp.async
  narrow_wait,            // the wait's .cta scope, for bytes of global memory from another CTA
  tensor_fence,           // tcgen05.fence missing
  used_load,              // a tcgen05.ld whose registers were used, but no wait::ld
  reused_columns,         // cp over columns that an earlier mma of the thread reads
  lanes,                  // the same or lanes of one warp, that met without bar.warp.sync
  diverged_lanes,         // lanes of one warp that did not meet
  collision,              // lanes of one instruction store different values
  map_fence,              // a tensor map edited, and used without fence.proxy.tensormap
  earlier_grid,           // the grid ahead may not be over
  fence_elsewhere,        // another thread has fenced than stores or loads the flag
  narrow_scope,           // strong accesses of which one's scope leaves the other out
  volatile_data,          // volatile accesses to shared memory that nothing orders
  constant_stale,         // ld.global.nc of what the grid has written
  constant_overwritten,   // the grid writes what ld.global.nc has read
  uninitialised_barrier,  // mbarrier.init is not ordered before the use
  relaxed_init,           // but for a cluster barrier that is arrived at without release
  init_fence,             // nor visible to the async proxy
};

// Which part of what is known: of this cluster, of another.
struct Hazards::Order {
  Clock Knowledge::*here;
  Clock Far::*far;
  static constexpr Order seen() { return {&Knowledge::seen, &Far::seen}; }
  static constexpr Order relaxed() { return {&Knowledge::relaxed, &Far::seen}; }
  static constexpr Order fresh() { return {&Knowledge::fresh, &Far::seen}; }
  static constexpr Order flushed() { return {&Knowledge::flushed, &Far::flushed}; }
  static constexpr Order loaded() { return {&Knowledge::loaded, &Far::loaded}; }
  static constexpr Order strict() { return {&Knowledge::strict, &Far::strict}; }
};

struct Hazards::Viewer {
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

}  // namespace emu
