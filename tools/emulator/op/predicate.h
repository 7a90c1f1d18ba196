// SPDX-License-Identifier: MIT
// Predicates, of which some lanes may have no value. If the missing one cannot change the result,
// the result has a value. Compilers need this: they compare first and test only later whether there
// was something to compare.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

struct Predicate {
  uint32_t yes = 0;
  Warp::Unknown unknown = {};
};

inline Predicate predicate(const Warp& w, const Operand& op, uint32_t active) {
  Predicate p;
  p.yes = w.truth(op, active, p.unknown);
  return p;
}

inline Predicate operator~(const Predicate& p) { return {~p.yes, p.unknown}; }

inline void set_predicate(Warp& w, const Operand& op, uint32_t active, const Predicate& p) {
  uint64_t* d = w.result(op, active, p.unknown);
  for_lanes(active, [yes = p.yes, d](uint32_t i) { d[i] = yes >> i & 1; });
}

// f of two masks, where no choice of the values that are missing makes a difference.
template <class F>
Predicate combine(const Predicate& p, const Predicate& q, F f) {
  const uint32_t p_open = p.unknown.lanes, q_open = q.unknown.lanes;
  const uint32_t a = p.yes & ~p_open, b = q.yes & ~q_open, d = f(a, b);
  const uint32_t open =
      (f(a | p_open, b) ^ d) | (f(a, b | q_open) ^ d) | (f(a | p_open, b | q_open) ^ d);
  return {d, {open, open & p_open ? p.unknown.of : q.unknown.of}};
}

}  // namespace emu::ops
