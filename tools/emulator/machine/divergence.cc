// SPDX-License-Identifier: MIT
// How the lanes of one warp diverge and reconverge.
#include "tools/emulator/machine/divergence.h"

#include "tools/emulator/ptx/module.h"

namespace emu {

Divergence::Divergence(uint32_t lanes) {
  if (lanes) fragments.push_back({.pc = 0, .mask = lanes});
}

void Divergence::branch(uint32_t taken, uint32_t target, uint32_t reconverge) {
  uint32_t stay = here().mask & ~taken;
  if (!stay) {
    here().pc = target;
    return;
  }
  int join = here().join;
  // A loop that lanes leave one by one asks for the same join again and again.
  if (reconverge != ptx::no_target && (join == no_join || joins_[size_t(join)].pc != reconverge))
    join = make_join(reconverge, here().mask, join);
  Fragment& f = here();
  f.mask = stay;
  f.join = join;
  ++f.pc;
  fragments.push_back({.pc = target, .mask = taken, .join = join});
}

void Divergence::exit(uint32_t lanes) {
  Fragment& f = here();
  int join = f.join;
  f.mask &= ~lanes;
  ++f.pc;
  if (!f.mask) remove_current();
  forget(join, lanes);
}

bool Divergence::park() {
  while (true) {
    Fragment& f = here();
    if (f.join == no_join) return true;
    Join& j = joins_[size_t(f.join)];
    if (j.pc != f.pc) return true;
    j.arrived |= f.mask;
    if (j.arrived != j.expected) {
      remove_current();
      return false;
    }
    f.mask = j.arrived;
    f.join = j.parent;
    j.used = false;
  }
}

void Divergence::unpark(uint32_t lanes) {
  for (Join& j : joins_) {
    if (!j.used || !(j.arrived & lanes)) continue;
    fragments.push_back({.pc = j.pc, .mask = j.arrived, .join = j.parent});
    j.expected &= ~j.arrived;
    j.arrived = 0;
  }
}

int Divergence::make_join(uint32_t pc, uint32_t expected, int parent) {
  size_t i = 0;
  while (i < joins_.size() && joins_[i].used) ++i;
  if (i == joins_.size()) joins_.emplace_back();
  joins_[i] = {pc, expected, 0, parent, true};
  return int(i);
}

// The lanes of a join are lanes of its parents too. Of the joins on the way out, at most one can
// become complete by this: the innermost that somebody has reached.
void Divergence::forget(int join, uint32_t lanes) {
  for (int i = join; i != no_join; i = joins_[size_t(i)].parent)
    joins_[size_t(i)].expected &= ~lanes;
  for (int i = join; i != no_join;) {
    Join& j = joins_[size_t(i)];
    if (j.arrived != j.expected) return;
    j.used = false;
    if (j.arrived) {
      fragments.push_back({.pc = j.pc, .mask = j.arrived, .join = j.parent});
      return;
    }
    i = j.parent;
  }
}

void Divergence::remove_current() {
  if (current + 1 != fragments.size()) fragments[current] = std::move(fragments.back());
  fragments.pop_back();
}

}  // namespace emu
