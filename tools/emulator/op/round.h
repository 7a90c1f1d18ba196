// SPDX-License-Identifier: MIT
// What arithmetic, comparison and conversion read from an instruction's modifiers.
#pragma once

#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/predicate.h"

namespace emu::ops {

inline soft::Round rounding_of(const Instr& in) {
  if (in.has(Mod::rz) || in.has(Mod::rzi)) return soft::Round::zero;
  if (in.has(Mod::rm) || in.has(Mod::rmi)) return soft::Round::down;
  if (in.has(Mod::rp) || in.has(Mod::rpi)) return soft::Round::up;
  return soft::Round::nearest;
}

inline soft::Rules rules_of(const Instr& in) {
  return {rounding_of(in), in.has(Mod::ftz), in.has(Mod::sat), in.has(Mod::relu),
          in.has(Mod::satfinite)};
}

// To nearest, and nothing is flushed or clamped: as the host's operations round.
inline bool rounds_to_nearest(const soft::Rules& r) {
  return r.round == soft::Round::nearest && !r.ftz && !r.sat && !r.relu && !r.satfinite;
}

// For setp and set: a bit per soft::Order that answers yes.
uint32_t outcomes_of(const Instr& in);

// setp p{|q}, a, b{, c}: c is there with .and, .or, .xor.
inline bool setp_combines(const Instr& in) {
  return in.has(Mod::and_) || in.has(Mod::or_) || in.has(Mod::xor_);
}
inline size_t setp_sources(const Instr& in) { return in.ops.size() - 2 - setp_combines(in); }
// `p` op c.
Predicate with_third(const Instr& in, const Predicate& p, const Predicate& c);
// p = result op c, q = !result op c.
void set_predicates(Warp& w, const Instr& in, uint32_t active, const Predicate& result);

}  // namespace emu::ops
