// SPDX-License-Identifier: MIT
// What the instructions of the hardware units remember about one CTA, besides barriers and memory.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tools/emulator/hardware/async_queue.h"
#include "tools/emulator/hardware/copy_groups.h"

namespace emu {

struct CtaUnits {
  CopyGroups bulk;    // cp.async.bulk with .bulk_group
  CopyGroups copies;  // cp.async
  std::vector<AsyncQueue::Chain>
      copy_chains;                // per thread: cp.async and its arrivals in order; 0 = not yet
  AsyncQueue::Chain tcgen05 = 0;  // the in-order pipe of cp, mma and commit; 0 = not yet used
  std::set<uint32_t> issuers;     // threads that put mma or cp on it: a commit covers only its own
};

}  // namespace emu
