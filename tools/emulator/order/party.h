// SPDX-License-Identifier: MIT
// What is kept of one warp: what its lanes know, and what they have under way.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/emulator/machine/events.h"
#include "tools/emulator/order/clock.h"

namespace emu::order {

constexpr uint32_t nobody = ~0u;

// Each pipe of a thread has two agents: `pipe` counts completed operations, pipe + 1 counts issued
// ones.
constexpr uint32_t issue_of(uint32_t pipe) { return pipe + 1; }

struct Queue {  // of one thread: operations that are complete in order
  uint32_t agent = nobody;
  uint32_t issued = 0, done = 0;  // done: as far as the thread has waited
};

struct Groups {  // the last operation of each group
  Queue queue;
  std::vector<uint32_t> ends;
};

struct Lane {
  Groups bulk, copies;
  Queue bulk_reads;                    // of the same groups
  uint32_t pipe = nobody, issued = 0;  // tcgen05
  template <class F>
  void queues(F f) const {
    for (const Queue* q : {&bulk.queue, &bulk_reads, &copies.queue})
      if (q->agent != nobody) f(*q);
  }
};

struct Fences {                       // for relaxed accesses
  Knowledge fenced[3];                // per scope, at the last fence
  uint32_t times[3] = {};             // when that was; 0: never
  Knowledge loaded[3];                // by relaxed loads since, for the next fence of that scope
  std::map<uint32_t, Clock> updated;  // learnt of other clusters by relaxed updates
  std::map<uint32_t, Clock> updates;  // other clusters' updates that came before these
};

struct Party {
  Knowledge all;                                // what every lane knows
  std::unique_ptr<Knowledge> own[32];           // what a lane has learnt since the lanes met
  std::shared_ptr<const Foreign> acquired[32];  // what a lane found at a flag of the grid last
  uint32_t time = 1;                            // its own epoch
  Clock tensor_ready;                           // after tcgen05.fence::before_thread_sync
  Clock tensor_arrived;                         // acquired, and not yet after ::after_thread_sync
  static constexpr uint32_t all_at_once = 32;
  std::unique_ptr<Fences> fences[33];  // of a lane; the last: of all lanes at once
  uint32_t ld = nobody, st = nobody, wgmma = nobody;
  uint32_t lds = 0, sts = 0, wgmmas = 0;
  uint32_t lds_used = 0, lds_waited = 0;          // number of tcgen05.ld from the first on
  uint32_t owners = 0, queuing = 0, fencing = 0;  // lanes that have own, queues, fences
  uint32_t fresh = 0;     // lanes whose own may have grown since the lanes last met
  bool fenced = false;    // there was a fence or a relaxed load since
  uint32_t flag_met = 0;  // its time when its CTA last met a flag by a relaxed update
  Lane lanes[32];
};

}  // namespace emu::order
