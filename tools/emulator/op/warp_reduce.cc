// SPDX-License-Identifier: MIT
// redux.sync and match.sync (PTX ISA 9.7.13.11, 9.7.13.8).
#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

template <class T>
uint32_t combine(const Instr& in, uint32_t a, uint32_t b) {
  if (in.has(Mod::add)) return a + b;
  if (in.has(Mod::and_)) return a & b;
  if (in.has(Mod::or_)) return a | b;
  if (in.has(Mod::xor_)) return a ^ b;
  return (T(a) < T(b)) == in.has(Mod::min) ? a : b;
}

uint32_t combine_float(const Instr& in, uint32_t a, uint32_t b) {
  const bool nan = in.has(Mod::NaN);
  return uint32_t(in.has(Mod::min) ? soft::minimum(a, b, soft::f32, false, nan)
                                   : soft::maximum(a, b, soft::f32, false, nan));
}

// redux.sync d, a, membermask
Step reduce(Warp& w, const Instr& in, uint32_t active) {
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops.back(), active, otherwise);
  if (!lanes) return otherwise;
  const Type type = in.type();
  const uint32_t keep = in.has(Mod::abs) ? 0x7FFFFFFF : ~0u;
  Warp::Row scratch;
  Warp::Unknown unknown;
  const uint64_t* a = w.operand(in.ops[1], lanes, scratch, unknown);
  if (unknown.lanes) unknown.lanes = lanes;
  uint32_t result = 0;
  bool first = true;
  for_lanes(lanes, [&](uint32_t i) {
    const uint32_t v = uint32_t(a[i]) & keep;
    result = first               ? v
             : type == Type::f32 ? combine_float(in, result, v)
             : type == Type::s32 ? combine<int32_t>(in, result, v)
                                 : combine<uint32_t>(in, result, v);
    first = false;
  });
  if (type == Type::f32 && !in.has(Mod::NaN) && (result & 0x7FFFFFFF) > 0x7F800000)
    result = 0x7FFFFFFF;  // all of them NaN
  uint64_t* d = w.result(in.ops[0], lanes, unknown);
  for_lanes(lanes, [&](uint32_t i) { d[i] = result; });
  return Step::next;
}

// match.any.sync d, a, membermask; match.all.sync d{|p}, a, membermask
template <bool All>
Step match(Warp& w, const Instr& in, uint32_t active) {
  Step otherwise;
  const uint32_t lanes = w.gather(in, in.ops.back(), active, otherwise);
  if (!lanes) return otherwise;
  const bool piped = in.ops.size() == 4;
  Warp::Row scratch;
  const uint64_t* source = w.source(in.ops[piped ? 2 : 1], lanes, scratch);
  uint64_t a[32];
  for_lanes(lanes, [&](uint32_t i) { a[i] = source[i]; });
  uint32_t equal[32] = {};
  for_lanes(lanes, [&](uint32_t i) {
    for_lanes(lanes, [&](uint32_t k) { equal[i] |= uint32_t(a[i] == a[k]) << k; });
    if (All && equal[i] != lanes) equal[i] = 0;
  });
  uint64_t* d = w.destination(in.ops[0], lanes);
  for_lanes(lanes, [&](uint32_t i) { d[i] = equal[i]; });
  if (!piped) return Step::next;
  uint64_t* p = w.destination(in.ops[1], lanes);
  for_lanes(lanes, [&](uint32_t i) { p[i] = equal[i] != 0; });
  return Step::next;
}

}  // namespace

Exec bind_redux_sync(const Instr&, std::string&) { return reduce; }
Exec bind_match_any_sync(const Instr&, std::string&) { return match<false>; }
Exec bind_match_all_sync(const Instr&, std::string&) { return match<true>; }

}  // namespace emu::ops
