// SPDX-License-Identifier: MIT
// How the lanes of one warp diverge and reconverge.
#include "tools/emulator/machine/divergence.h"

#include <algorithm>

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

void Divergence::call(uint32_t lanes, uint32_t target) {
  const int join = make_join(here().pc + 1, here().mask, here().join);
  Fragment& f = here();
  f.join = join;
  if (f.mask == lanes) {
    f.pc = target;
    return;
  }
  f.mask &= ~lanes;
  ++f.pc;
  fragments.push_back({.pc = target, .mask = lanes, .join = join});
}

void Divergence::go_to(uint32_t lanes, uint32_t pc) {
  Fragment& f = here();
  if (f.mask == lanes) {
    f.pc = pc;
    return;
  }
  f.mask &= ~lanes;
  fragments.push_back({.pc = pc, .mask = lanes, .join = here().join});
}

void Divergence::exit(uint32_t lanes) {
  Fragment& f = here();
  int join = f.join;
  f.mask &= ~lanes;
  ++f.pc;
  if (!f.mask) remove_current();
  forget(join, lanes);
  wake();
}

void Divergence::split(uint32_t lanes) {
  Fragment& f = here();
  const uint32_t pc = f.pc;
  if (f.join == no_join || joins_[size_t(f.join)].pc != pc + 1)
    f.join = make_join(pc + 1, f.mask, f.join);
  f.mask &= ~lanes;
  fragments.push_back({.pc = pc, .mask = lanes, .join = here().join});
}

// Joins that not all of them are in have lost their purpose: the lanes are together.
void Divergence::merge() {
  Fragment one{.pc = here().pc, .join = here().join};
  for (const Fragment& f : fragments) {
    one.mask |= f.mask;
    one.join = common(one.join, f.join);
  }
  for (Join& j : joins_) j.used = false;
  for (int i = one.join; i != no_join; i = joins_[size_t(i)].parent) joins_[size_t(i)].used = true;
  fragments.assign(1, one);
  current = 0;
}

// The innermost join that both are in.
int Divergence::common(int a, int b) const {
  for (; a != no_join; a = joins_[size_t(a)].parent)
    for (int i = b; i != no_join; i = joins_[size_t(i)].parent)
      if (i == a) return a;
  return no_join;
}

bool Divergence::park() {
  while (true) {
    Fragment& f = here();
    if (f.join == no_join) return true;
    Join& j = joins_[size_t(f.join)];
    if (j.pc != f.pc) return true;
    j.arrived |= f.mask;
    if (j.arrived != j.expected) {
      if (!parked_) ran_beside_ = 0;
      parked_ |= f.mask;
      remove_current();
      wake();
      return false;
    }
    parked_ &= ~j.arrived;
    f.mask = j.arrived;
    f.join = j.parent;
    j.used = false;
  }
}

void Divergence::go_on(const Join& join) {
  parked_ &= ~join.arrived;
  fragments.push_back({.pc = join.pc, .mask = join.arrived, .join = join.parent});
}

bool Divergence::unpark(uint32_t lanes) {
  if (!(parked_ & lanes)) return false;
  for (Join& j : joins_) {
    if (!j.used || !(j.arrived & lanes)) continue;
    go_on(j);
    j.expected &= ~j.arrived;
    j.arrived = 0;
  }
  return true;
}

// The patience shrinks: a warp that needed its parked lanes once will need them again, for example
// for a lock that its lanes take one after the other.
void Divergence::run_beside_parked(uint64_t instructions) {
  ran_beside_ += instructions;
  if (ran_beside_ < patience_) return;
  ran_beside_ = 0;
  patience_ = std::max(patience_ / 4, least_patience);
  unpark(~0u);
}

uint32_t Divergence::parked_for(uint32_t lanes) const {
  uint32_t parked = 0;
  for (const Join& j : joins_)
    if (j.used && (j.expected & ~j.arrived & lanes)) parked |= j.arrived;
  return parked;
}

void Divergence::wake() {
  for (Fragment& f : fragments)
    if (f.aligned) f.blocked_at = runnable;
}

int Divergence::make_join(uint32_t pc, uint32_t expected, int parent) {
  size_t i = 0;
  while (i < joins_.size() && joins_[i].used) ++i;
  if (i == joins_.size()) joins_.emplace_back();
  joins_[i] = {pc, expected, 0, parent, true};
  return int(i);
}

// The lanes of a join are lanes of its parents too. When lanes end, at most one of these joins can
// become complete: the innermost one at which a lane is parked.
void Divergence::forget(int join, uint32_t lanes) {
  for (int i = join; i != no_join; i = joins_[size_t(i)].parent)
    joins_[size_t(i)].expected &= ~lanes;
  for (int i = join; i != no_join;) {
    Join& j = joins_[size_t(i)];
    if (j.arrived != j.expected) return;
    j.used = false;
    if (j.arrived) return go_on(j);
    i = j.parent;
  }
}

void Divergence::remove_current() {
  if (current + 1 != fragments.size()) fragments[current] = std::move(fragments.back());
  fragments.pop_back();
}

}  // namespace emu
