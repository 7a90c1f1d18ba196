// SPDX-License-Identifier: MIT
// What the instructions of the hardware units remember about one CTA, besides barriers and memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "async_queue.h"
#include "copy_groups.h"
#include "in_flight.h"
#include "proxy_order.h"
#include "unobserved.h"

namespace emu {

// An mma or cp that no wait has shown to be complete.
struct PipeWork {
  uint32_t thread;
  uint64_t number;                // counts the CTA's mma and cp from 1
  std::function<void()> release;  // takes it out of flight
};

struct CtaUnits {
  CopyGroups bulk;    // cp.async.bulk with .bulk_group
  CopyGroups copies;  // cp.async
  std::map<uint32_t, AsyncQueue::Chain>
      copy_chains;  // per thread: cp.async and its arrivals in order
  InFlight in_flight;
  ProxyOrder proxy;
  Unobserved unobserved;          // by this CTA's mbarriers
  AsyncQueue::Chain tcgen05 = 0;  // the in-order pipe of cp, mma and commit; 0 = not yet used
  std::set<uint32_t> issuers;     // threads that put mma or cp on it: a commit covers only its own
  std::deque<PipeWork> issued;    // oldest first
  uint64_t last_issued = 0;       // number
};

}  // namespace emu
