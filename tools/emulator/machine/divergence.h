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
#include <functional>
#include <string>
#include <vector>

namespace emu {

class Divergence {
 public:
  static constexpr int no_join = -1;
  static constexpr uint64_t runnable = ~0ull, asleep = ~0ull - 1;

  struct Fragment {
    uint32_t pc = 0, mask = 0;
    int join = no_join;
    uint64_t blocked_at = runnable;  // Cluster::progress when it blocked; asleep: until wake()
    uint64_t ticket = 0;    // what a barrier instruction remembers between tries; 0 = nothing
    uint32_t member = 0;    // waits at pc for these lanes (.sync with a membermask); 0 = no
    uint32_t gathered = 0;  // lanes of this fragment that take part in the .sync of `member`
    bool aligned = false;   // waits at pc, an .aligned instruction, for the rest of the warp
    std::function<std::string()> waiting = {};  // what it is blocked on, for reports
    int64_t waits_at = -1;  // the mbarrier it waits for: shared address, rank in bits 24 and up
    uint64_t inits = 0;     // MbarrierTable::inits() when all its lanes waited at waits_at; else 0
  };

  explicit Divergence(uint32_t lanes);

  std::vector<Fragment> fragments;  // those that are not parked
  size_t current = 0;               // the one that executes
  Fragment& here() { return fragments[current]; }

  // The current fragment's lanes in `taken` go to `target`, the others to the next instruction.
  void branch(uint32_t taken, uint32_t target, uint32_t reconverge);
  // The current fragment's lanes in `lanes` call `target`. The others wait at the next instruction,
  // where all meet when the call has returned.
  void call(uint32_t lanes, uint32_t target);
  // The current fragment's lanes in `lanes` go on at `pc`: a return, which leads each to its
  // caller.
  void go_to(uint32_t lanes, uint32_t pc);
  // The current fragment's lanes in `lanes` end; the others go on after the instruction.
  void exit(uint32_t lanes);
  // The current fragment's lanes in `lanes` stay at its instruction as a fragment of their own;
  // they and the others meet after it.
  void split(uint32_t lanes);
  // Makes all lanes of the warp one fragment. They must all be at the current fragment's
  // instruction.
  void merge();
  // Lets the parked lanes among `lanes` go on without their siblings, because somebody waits for
  // them. False: none of them was parked.
  bool unpark(uint32_t lanes);
  bool has_parked() const { return parked_; }
  // Parked lanes for which nobody waits go on after that many instructions of the others. A lane
  // that has left a loop may hold the lock for which its siblings spin in the loop.
  void run_beside_parked(uint64_t instructions);
  // Lanes parked until some of `lanes` have come.
  uint32_t parked_for(uint32_t lanes) const;
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
  void go_on(const Join& join);  // its parked lanes, as a fragment
  void wake();                   // fragments that wait at an .aligned instruction check again
  int common(int a, int b) const;

  static constexpr uint64_t longest_patience = 1 << 14, least_patience = 1 << 8;
  std::vector<Join> joins_;
  uint32_t parked_ = 0;                                    // lanes
  uint64_t ran_beside_ = 0, patience_ = longest_patience;  // instructions
};

}  // namespace emu
