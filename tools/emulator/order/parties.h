// SPDX-License-Identifier: MIT
// For each warp of a cluster: what it knows to have happened.
//
// Every warp has a Knowledge that its lanes share, and one for each lane that has learnt more since
// they met. A release (arrive, barrier, fence and store) hands them on, an acquire (wait, barrier,
// load and fence) joins them.
//
// Lanes meet at bar.warp.sync and at barriers of the CTA. At other instructions that all of them
// execute together (.sync, .aligned) they meet on hardware, but the manual gives these no memory
// order: what relies on it is formal. If there is no such instruction between two accesses, it is
// an error: loads of a warp were overtaken by one lane's mbarrier.arrive right after them
// (docs/notebook.md, H200).
#pragma once

#include "tools/emulator/order/now.h"
#include "tools/emulator/order/party.h"

namespace emu::order {

class Parties {
 public:
  explicit Parties(const Now& now);

  Party& me() { return parties_[now_.self()]; }
  Party& leader();  // the first warp of the warpgroup
  const Party& of(uint32_t warp) const { return parties_[warp]; }
  const std::vector<Party>& all() const { return parties_; }
  uint32_t number(const Party& p) const { return uint32_t(&p - parties_.data()); }
  uint32_t new_agent() { return agents_++; }
  uint32_t new_tensor_agent();
  // After the warps comes the agent whose first time is the end of the grids ahead.
  uint32_t earlier_grids() const { return uint32_t(parties_.size()); }

  static Knowledge& own(Party& p, uint32_t lane);
  Knowledge known(const Party& p, uint32_t lanes) const;
  static uint32_t known_time(const Party& p, uint32_t agent);  // to any lane

  // What lanes hand on, and take.
  Knowledge release(Party& p, uint32_t lanes);
  // The same for work that hands on nothing else: release() copies a dozen clocks for each piece.
  struct Before {
    Clock seen, strict, fresh;
  };
  Before release_before(Party& p, uint32_t lanes);
  Knowledge release_relaxed(const Party& p, uint32_t lanes) const;
  void acquire(Party& p, uint32_t lanes, const Knowledge& handed);
  void refresh(Party& p, uint32_t lanes);
  void load_relaxed(Party& p, uint32_t lanes, Scope scope, const Knowledge& handed);
  void learn(Party& p, uint32_t lanes, uint32_t agent, uint32_t time);
  void meet(Party& p, uint32_t lanes, bool by_the_manual);
  Knowledge of_tensor(const Knowledge& k) const;

  // Fences, and what a relaxed access or a barrier hands on for them.
  void fence(Scope scope);
  void fence_proxy(bool shared, bool global);
  void fence_tensor_map(uint64_t address, uint32_t lanes);
  static bool has_fenced(const Party& p, uint32_t lane);
  Knowledge fenced(const Party& p, uint32_t lanes, Scope scope) const;
  void add_fences(const Party& p, uint32_t lanes, Knowledge& handed) const;
  static bool has_flushed(const Party& p, uint32_t lane);
  static void add_flushed(const Party& p, uint32_t lane, Knowledge& handed);

 private:
  void add_accesses(const Party& p, uint32_t lanes, uint32_t time, Clock& to) const;
  static void add_queues(const Party& p, uint32_t lanes, Clock& to);
  static Fences& fences(Party& p, uint32_t lane);
  void meet_flag(const Party& p);
  void meet_fences(Party& p);
  void finish_loads(Party& p, uint32_t lanes);
  template <class Here, class There>
  void carry(uint32_t lanes, Here here, There far);  // a proxy fence

  const Now& now_;
  std::vector<Party> parties_;
  uint32_t agents_;
  std::vector<uint32_t> tensor_agents_;  // of tcgen05 work
};

}  // namespace emu::order
