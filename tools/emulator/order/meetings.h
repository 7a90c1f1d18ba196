// SPDX-License-Identifier: MIT
// Where threads hand on what they know: barriers of CTA and cluster, mbarriers, words in memory.
#pragma once

#include <map>

#include "tools/emulator/order/global_order.h"
#include "tools/emulator/order/operations.h"

namespace emu::order {

struct Slot {
  uint64_t ticket = ~0ull;
  Knowledge handed;
};

struct Barrier {  // an mbarrier
  uint32_t agent, init_time, fence_time = 0;
  uint16_t warp;
  uint8_t lane;
  uint32_t pc;
  Slot phases[4];
  std::vector<bool> known_to;  // warps of which every lane knows the init; empty: none
};

class Meetings {
 public:
  Meetings(const Now& now, Parties& parties, Operations& operations, GlobalOrder& global);

  void named_arrive(uint32_t id, uint64_t ticket);
  void named_pass(uint32_t id, uint64_t ticket);
  void cluster_arrive(uint64_t ticket, bool relaxed);
  void cluster_pass(uint64_t ticket);

  Barrier* find(Cta& cta, uint32_t address);
  void barrier_init(Cta& cta, uint32_t address, uint32_t lane);  // or every_lane
  void barrier_inval(Cta& cta, uint32_t address);
  void fence_init();
  void arrive(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
              bool relaxed);
  void arrive(Operation op, Cta& cta, uint32_t address, uint64_t phase, bool last);
  void complete_tx(Operation op, Cta& cta, uint32_t barrier, uint64_t phase);
  void observe(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
               bool relaxed);

  // How many phases the warp knows to be over.
  uint64_t phases_known(const Party& p, const Cta& cta, uint32_t address) const;
  // A wait by parity that was suspended in phase `since` and is over now: a formal finding if it
  // came too late.
  void check_in_time(Cta& cta, uint32_t address, uint32_t lanes, uint64_t since);

  // A lane's store or update of a word, its load; `cta`: whose shared memory, nullptr: global
  // memory.
  void release_at(const Cta* cta, uint64_t address, uint32_t lane, Scope scope, bool relaxed);
  void acquire_at(const Cta* cta, uint64_t address, uint32_t lane, Scope scope, bool relaxed);

 private:
  struct Flag {                  // what releases left at one address
    std::vector<Knowledge> cta;  // by rank of who released, at .cta and wider
    Knowledge cluster;           // at .cluster and wider
  };
  using Flags = std::map<uint64_t, Flag>;
  static uint64_t key(const Cta* cta, uint64_t address);
  Flags& flags(const Cta* cta) { return cta ? shared_flags_ : global_flags_; }
  Flag& flag(const Cta* cta, uint64_t address);
  static Knowledge& slot(std::vector<Slot>& slots, uint64_t ticket);
  static Knowledge& phase_of(Barrier& b, uint64_t phase);

  const Now& now_;
  Parties& parties_;
  Operations& operations_;
  GlobalOrder& global_;
  std::vector<std::map<uint32_t, Barrier>> barriers_;  // by rank
  std::vector<std::vector<Slot>> named_;               // by rank * 16 + id
  std::vector<Slot> cluster_slots_;
  Flags shared_flags_, global_flags_;  // by address
};

}  // namespace emu::order
