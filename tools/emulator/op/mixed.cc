// SPDX-License-Identifier: MIT
// add, sub and fma of f32 with factors and summands of 16 bits (PTX ISA 9.7.5).
#include "tools/emulator/op/mixed.h"

#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/round.h"

namespace emu::ops {

namespace {

enum class Kind { add, sub, fma };

// The narrow operands are f32 numbers, exactly; one rounding follows.
template <const soft::Format& From, Kind K>
Step mixed(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row scratch[3];
  Warp::Unknown unknown;
  const uint64_t* src[3] = {};
  for (size_t i = 0; i + 1 < in.ops.size(); ++i)
    src[i] = w.operand(in.ops[i + 1], active, scratch[i], unknown);
  const soft::Rules rules = rules_of(in);
  uint64_t* d = w.result(in.ops[0], active, unknown);
  const auto wide = [](uint64_t code) { return soft::convert(code & 0xFFFF, From, soft::f32); };
  for_lanes(active, [&](uint32_t i) {
    const uint64_t a = wide(src[0][i]);
    const uint64_t b = K == Kind::fma ? wide(src[1][i]) : uint32_t(src[1][i]);
    if (K == Kind::fma)
      d[i] = soft::fma(a, b, uint32_t(src[2][i]), soft::f32, rules);
    else
      d[i] = soft::add(a, K == Kind::sub ? b ^ soft::f32.sign_bit() : b, soft::f32, rules);
  });
  return Step::next;
}

template <Kind K>
Exec by_type(const Instr& in) {
  return in.type(1) == Type::f16 ? mixed<soft::f16, K> : mixed<soft::bf16, K>;
}

}  // namespace

Exec mixed_add(const Instr& in) { return by_type<Kind::add>(in); }
Exec mixed_sub(const Instr& in) { return by_type<Kind::sub>(in); }
Exec mixed_fma(const Instr& in) { return by_type<Kind::fma>(in); }

}  // namespace emu::ops
