// SPDX-License-Identifier: MIT
// How the lanes of one warp diverge and reconverge.
//
// A fragment is a set of lanes at one position. A divergent branch makes a join at its immediate
// post-dominator; a fragment that reaches its join's position parks there until every lane the join
// expects has come or exited, then all of them go on as one fragment. Fragments of a warp run
// independently, as PTX has demanded since sm_70: a lane that spins does not starve its siblings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emu {

class Divergence {
 public:
  static constexpr int no_join = -1;
  static constexpr uint64_t runnable = ~0ull;

  struct Fragment {
    uint32_t pc = 0, mask = 0;
    int join = no_join;
    uint64_t blocked_at = runnable;  // Cluster::progress when it blocked
    uint64_t ticket = 0;       // what a barrier instruction remembers between tries; 0 = nothing
    uint32_t member = 0;       // waits at pc for these lanes (.sync with a membermask); 0 = no
    uint32_t gathered = 0;     // its own lanes that take part in that
    std::string waiting = {};  // what it is blocked on, for reports
    int64_t waits_at = -1;     // the mbarrier it waits for: shared address, rank in bits 24 and up
  };

  explicit Divergence(uint32_t lanes);

  std::vector<Fragment> fragments;  // those that are not parked
  size_t current = 0;               // the one that executes
  Fragment& here() { return fragments[current]; }

  // The current fragment's lanes in `taken` go to `target`, the others to the next instruction.
  void branch(uint32_t taken, uint32_t target, uint32_t reconverge);
  // The current fragment's lanes in `lanes` end; the others go on behind the instruction.
  void exit(uint32_t lanes);
  // Lets parked lanes go on without their siblings, as somebody waits for `lanes` of them.
  void unpark(uint32_t lanes);
  // Parks the current fragment if it stands at its join. False when the current fragment is gone.
  bool settle() {
    const Fragment& f = fragments[current];
    return f.join == no_join || joins_[size_t(f.join)].pc != f.pc || park();
  }

  // Lanes parked at a join, and where: for reports. Calls f(pc, mask).
  template <class F>
  void each_parked(F f) const {
    for (const Join& j : joins_)
      if (j.used && j.arrived) f(j.pc, j.arrived);
  }

 private:
  struct Join {
    uint32_t pc = 0;
    uint32_t expected = 0, arrived = 0;  // lanes
    int parent = no_join;
    bool used = false;
  };
  int make_join(uint32_t pc, uint32_t expected, int parent);
  bool park();
  void forget(int join, uint32_t lanes);  // these lanes will never arrive
  void remove_current();

  std::vector<Join> joins_;
};

}  // namespace emu
