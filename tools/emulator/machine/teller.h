// SPDX-License-Identifier: MIT
// The key to the memories of a running grid. Only these hold it; each tells the observers of every
// access that it makes or hands out. What an instruction does to memory goes through them, so
// nothing can be done there unseen.
#pragma once

namespace emu {

class Teller {
  Teller() = default;
  friend struct Place;          // lane_memory.h: accesses of lanes
  friend class Bytes;           // the same
  friend class SharedLanes;     // shared_lanes.h: of all lanes at once
  friend class GlobalLanes;     // global_lanes.h: the same
  friend class AsyncWork;       // async_work.h: accesses of asynchronous work
  friend class MbarrierAccess;  // mbarrier_access.h: mbarrier objects
  friend class TensorColumns;   // tensor_columns.h: allocation of tensor memory
  friend class Warp;            // translates addresses for Place
  friend class Scheduler;       // looks when a CTA ends
};

}  // namespace emu
