// SPDX-License-Identifier: MIT
// What may be wrong between two accesses to the same bytes.
#pragma once

#include <cstdint>

#include "tools/emulator/base/findings.h"

namespace emu::order {

enum class Reason : uint8_t {
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
  unfenced_flag,          // an atomic update met the flag, and no fence has followed
  stale_line,             // the same, and the CTA had loaded the line before the flag
  fence_elsewhere,        // another thread has fenced than stores or loads the flag
  narrow_scope,           // strong accesses of which one's scope leaves the other out
  volatile_data,          // volatile accesses to shared memory that nothing orders
  constant_stale,         // ld.global.nc of what the grid has written
  constant_overwritten,   // the grid writes what ld.global.nc has read
  uninitialised_barrier,  // mbarrier.init is not ordered before the use
  relaxed_init,           // but for a cluster barrier that is arrived at without release
  init_fence,             // nor visible to the async proxy
};

Severity severity_of(Reason reason);

}  // namespace emu::order
