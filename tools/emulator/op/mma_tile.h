// SPDX-License-Identifier: MIT
// What the dense and the sparse mma.sync share: accumulators in registers (PTX ISA 9.7.14.5), the
// operands of a sum, and 8-bit floats as fp16. With g = lane / 4 and t = lane % 4, D has columns 2t
// and 2t + 1 of rows g and g + 8.
#pragma once

#include <array>
#include <bitset>
#include <cstring>

#include "tools/emulator/arithmetic/mma_dot.h"
#include "tools/emulator/arithmetic/softfloat.h"
#include "tools/emulator/op/element_types.h"
#include "tools/emulator/op/mma_products.h"
#include "tools/emulator/op/nan.h"

namespace emu::ops {

constexpr uint32_t columns = 8, most_rows = 16;

// The sums that have no value, since one of their operands has none.
struct Absent {
  std::bitset<most_rows * columns> sums;  // as Tile::d
  const Operand* of = nullptr;            // one of the registers without a value
  void row(uint32_t r) {
    for (uint32_t n = 0; n < columns; ++n) sums.set(n * most_rows + r);
  }
  void column(uint32_t n) {
    for (uint32_t r = 0; r < most_rows; ++r) sums.set(n * most_rows + r);
  }
};

// D is kept column by column, because mma_dot is called with A and B exchanged: its first operand
// is the one with fewer rows, and that is B.
struct Tile {
  uint8_t a[most_rows * k_bytes] = {}, b[columns * k_bytes] = {};
  uint32_t d[most_rows * columns] = {};
  Absent absent;
};

inline uint32_t rows_of(const Instr& in) {
  return in.has(Mod::m8n8k16) || in.has(Mod::m8n8k32) || in.has(Mod::m8n8k128) ||
                 in.has(Mod::m8n8k4)
             ? 8
             : 16;
}

// f(lane, register, value) for every register of a fragment.
template <class F>
void each_word(Warp& w, const Operand& fragment, F f) {
  for (uint32_t i = 0; i < fragment.elements.size(); ++i) {
    Warp::Row scratch;
    const uint64_t* values = w.source(fragment.elements[i], ~0u, scratch);
    for (uint32_t lane = 0; lane < 32; ++lane) f(lane, i, values[lane]);
  }
}

// The same, and none(lane, register) for those without a value.
template <class A, class F, class G>
void each_word(Warp& w, const Operand& fragment, A& absent, F f, G none) {
  for (uint32_t i = 0; i < fragment.elements.size(); ++i) {
    Warp::Row scratch;
    Warp::Unknown unknown;
    const uint64_t* values = w.operand(fragment.elements[i], ~0u, scratch, unknown);
    for (uint32_t lane = 0; lane < 32; ++lane) f(lane, i, values[lane]);
    for (uint32_t left = unknown.lanes; left; left &= left - 1)
      none(uint32_t(__builtin_ctz(left)), i);
    if (unknown.lanes) absent.of = unknown.of;
  }
}

// The index in Tile::d of an accumulator of a lane: column 0 or 1 of its pair, and row g or, with
// half = 1, g + 8. A register holds one column, or both if they have 16 bits.
inline uint32_t place_of(uint32_t lane, uint32_t column, uint32_t half) {
  return (lane % 4 * 2 + column) * most_rows + lane / 4 + 8 * half;
}

inline void load_accumulators(Warp& w, const Instr& in, bool packed, Tile& tile) {
  const auto keep = [&](uint32_t lane, uint32_t i, uint64_t value) {
    if (!packed) {
      tile.d[place_of(lane, i % 2, i / 2)] = uint32_t(value);
      return;
    }
    tile.d[place_of(lane, 0, i)] = uint32_t(value & 0xFFFF);
    tile.d[place_of(lane, 1, i)] = uint32_t(value >> 16 & 0xFFFF);
  };
  each_word(w, in.ops[3], tile.absent, keep, [&](uint32_t lane, uint32_t i) {
    tile.absent.sums.set(place_of(lane, packed ? 0 : i % 2, packed ? i : i / 2));
    if (packed) tile.absent.sums.set(place_of(lane, 1, i));
  });
}

// A register of D: it has no value in lanes where one of its sums has none.
inline uint64_t* accumulator(Warp& w, const Operand& d, uint32_t i, bool packed,
                             const Absent& absent) {
  if (absent.sums.none()) return w.destination(d, ~0u);
  Warp::Unknown unknown{0, absent.of};
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const bool none = packed
                          ? absent.sums[place_of(lane, 0, i)] || absent.sums[place_of(lane, 1, i)]
                          : absent.sums[place_of(lane, i % 2, i / 2)];
    unknown.lanes |= uint32_t(none) << lane;
  }
  return w.result(d, ~0u, unknown);
}

inline void store_accumulators(Warp& w, const Instr& in, bool packed, const Tile& tile) {
  const auto& registers = in.ops[0].elements;
  for (uint32_t i = 0; i < registers.size(); ++i) {
    uint64_t* d = accumulator(w, registers[i], i, packed, tile.absent);
    for (uint32_t lane = 0; lane < 32; ++lane)
      d[lane] = packed ? tile.d[place_of(lane, 0, i)] | tile.d[place_of(lane, 1, i)] << 16
                       : tile.d[place_of(lane, i % 2, i / 2)];
  }
}

inline DotOperands operands(const Instr& in, const Tile& tile) {
  DotOperands o{};
  o.a = tile.b;
  o.b = tile.a;
  o.rows = columns;
  o.n = rows_of(in);
  o.a_type = element_type(in.type(2));
  o.b_type = element_type(in.type(1));
  o.d_type = in.type() == Type::f16   ? AccumulatorType::f16
             : in.type() == Type::f32 ? AccumulatorType::f32
                                      : AccumulatorType::s32;
  o.saturate = in.has(Mod::satfinite);
  o.accumulate = true;
  o.zero_raises = false;  // as on an H200: mma_dot.h
  return o;
}

// a * b + c in f64. A NaN in the result has the payload of an operand.
inline uint64_t fused(uint64_t a, uint64_t b, uint64_t c, const soft::Rules& rules) {
  return with_payload(soft::fma(a, b, c, soft::f64, rules), soft::f64, {a, b, c});
}

// Only GPUs of compute capability 12.0 multiply 8-bit floats in mma.sync. For 9.0 and 10.0 ptxas
// 13.0 writes two multiplications of fp16 (sm_90a, sm_100a: F2FP.F16.E4M3.UNPACK_B, HMMA.16816,
// FADD or HADD2). The first multiplies the lower two bytes of each register. The second multiplies
// the upper two and adds the sum of the first. C is added last.
constexpr uint32_t low = 0, high = 2;

inline const std::array<uint16_t, 256>& as_fp16(Type t) {
  const auto table = [](const soft::Format& from) {
    std::array<uint16_t, 256> codes;
    for (uint32_t i = 0; i < 256; ++i) codes[i] = uint16_t(soft::convert(i, from, soft::f16));
    return codes;
  };
  static const std::array<uint16_t, 256> e4m3 = table(soft::e4m3), e5m2 = table(soft::e5m2);
  return t == Type::e4m3 ? e4m3 : e5m2;
}

// Two of every four bytes, widened.
inline void widen(const uint8_t* from, uint32_t rows, uint32_t half, Type type, uint8_t* to) {
  const std::array<uint16_t, 256>& codes = as_fp16(type);
  for (uint32_t i = half; i < rows * k_bytes; i += 4, to += 4) {
    const uint16_t pair[2] = {codes[from[i]], codes[from[i + 1]]};
    std::memcpy(to, pair, 4);
  }
}

}  // namespace emu::ops
