// SPDX-License-Identifier: MIT
// mma.sync of one warp (PTX ISA 9.7.14.5). With g = lane / 4 and t = lane % 4, register i of A has
// 4 bytes of row g + 8 (i % 2) from byte 16 (i / 2) + 4 t on, register i of B the same of column g
// from byte 16 i + 4 t, and D has columns 2t and 2t + 1 of rows g and g + 8. Sums are those of 9.0
// and later: one addition of all of K, mma_dot.h. 8-bit floats: see dot_as_fp16.
#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/base/settings.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/mma_tile.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/scaled_sum.h"

namespace emu::ops {

namespace {

enum Slot : size_t { d_slot, a_slot, b_slot, c_slot, sfa_slot, ida_slot, sfb_slot, idb_slot };

void load_operands(Warp& w, const Instr& in, Tile& tile) {
  const uint32_t halves = rows_of(in) / 8;
  const auto row = [=](uint32_t lane, uint32_t i) { return lane / 4 + 8 * (i % halves); };
  each_word(
      w, in.ops[a_slot], tile.absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        const uint32_t word = uint32_t(value);
        std::memcpy(&tile.a[row(lane, i) * k_bytes + i / halves * 16 + lane % 4 * 4], &word, 4);
      },
      [&](uint32_t lane, uint32_t i) { tile.absent.row(row(lane, i)); });
  each_word(
      w, in.ops[b_slot], tile.absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        const uint32_t word = uint32_t(value);
        std::memcpy(&tile.b[lane / 4 * k_bytes + i * 16 + lane % 4 * 4], &word, 4);
      },
      [&](uint32_t lane, uint32_t) { tile.absent.column(lane / 4); });
}

void count(Warp& w, const Instr& in, uint32_t k) {
  ++w.cta.counters.mmas;
  w.cta.counters.macs += uint64_t(rows_of(in)) * columns * k;
}

// What shapes with a shorter K leave of the 32 bytes is zero, which adds nothing.
Step dot(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  load_operands(w, in, tile);
  const bool packed = in.type() == Type::f16;
  load_accumulators(w, in, packed, tile);
  mma_dot(operands(in, tile), tile.d, most_rows);
  store_accumulators(w, in, packed, tile);
  count(w, in, uint32_t(in.ops[b_slot].elements.size()) * 128 / ptx::bits_of(in.type(1)));
  return Step::next;
}

// ---- 8-bit floats ------------------------------------------------------------------------------

Step dot_as_fp16(Warp& w, const Instr& in, uint32_t active) {
  if (w.cta.cluster.launch.compute_capability >= 120) return dot(w, in, active);
  w.require_whole(active, in.opcode);
  Tile tile, wide;
  load_operands(w, in, tile);
  const bool packed = in.type() == Type::f16;
  load_accumulators(w, in, packed, tile);
  DotOperands o = operands(in, wide);
  o.a_type = o.b_type = ElementType::f16;
  for (const uint32_t half : {low, high}) {
    widen(tile.a, most_rows, half, in.type(1), wide.a);
    widen(tile.b, columns, half, in.type(2), wide.b);
    mma_dot(o, wide.d, most_rows);
  }
  for (uint32_t i = 0; i < most_rows * columns; ++i)
    tile.d[i] = uint32_t(soft::add(tile.d[i], wide.d[i], packed ? soft::f16 : soft::f32));
  store_accumulators(w, in, packed, tile);
  count(w, in, uint32_t(in.ops[b_slot].elements.size()) * 16);
  return Step::next;
}

// ---- floats of 8 bits and fewer on 12.0: each in a byte of its own ------------------------------

// From bytes to the dense rows of mma_dot, 16 elements to a piece of 16 bytes. 4 bits lie in the
// middle of their byte, 6 at its bottom (PTX ISA 9.7.14.5, .kind::f8f6f4).
void make_dense(uint8_t* rows, uint32_t count, Type type) {
  const uint32_t bits = ptx::bits_of(type);
  if (bits == 8) return;
  const uint32_t below = bits == 4 ? 2 : 0;
  for (uint8_t* piece = rows; piece < rows + count * k_bytes; piece += 16) {
    uint8_t dense[16] = {};
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t code = piece[i] >> below & ((1u << bits) - 1), at = i * bits;
      dense[at / 8] |= uint8_t(code << at % 8);
      if (at % 8 + bits > 8) dense[at / 8 + 1] |= uint8_t(code >> (8 - at % 8));
    }
    std::memcpy(piece, dense, 16);
  }
}

void load_small(Warp& w, const Instr& in, Tile& tile) {
  load_operands(w, in, tile);
  make_dense(tile.a, most_rows, in.type(1));
  make_dense(tile.b, columns, in.type(2));
}

Step small_floats(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  load_small(w, in, tile);
  const bool packed = in.type() == Type::f16;
  load_accumulators(w, in, packed, tile);
  mma_dot(operands(in, tile), tile.d, most_rows);
  store_accumulators(w, in, packed, tile);
  count(w, in, 32);
  return Step::next;
}

// ---- integers of 4 bits and single bits --------------------------------------------------------

template <auto Products>
Step integers(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  load_operands(w, in, tile);
  load_accumulators(w, in, false, tile);
  for (uint32_t r = 0; r < rows_of(in); ++r)
    for (uint32_t n = 0; n < columns; ++n) {
      uint32_t& d = tile.d[n * most_rows + r];
      d = integer_sum(d, Products(&tile.a[r * k_bytes], &tile.b[n * k_bytes], in), in);
    }
  store_accumulators(w, in, false, tile);
  count(w, in, uint32_t(in.ops[b_slot].elements.size()) * 128 / ptx::bits_of(in.type(1)));
  return Step::next;
}

// ---- f64: one fused multiply-add after the other, in the order of k ----------------------------

Step doubles(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const uint32_t halves = rows_of(in) / 8, depth = 4 * uint32_t(in.ops[b_slot].elements.size());
  std::array<uint64_t, 16> a[most_rows], b[columns];
  Absent absent;
  const auto row = [=](uint32_t lane, uint32_t i) { return lane / 4 + 8 * (i % halves); };
  each_word(
      w, in.ops[a_slot], absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        a[row(lane, i)][i / halves * 4 + lane % 4] = value;
      },
      [&](uint32_t lane, uint32_t i) { absent.row(row(lane, i)); });
  each_word(
      w, in.ops[b_slot], absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) { b[lane / 4][i * 4 + lane % 4] = value; },
      [&](uint32_t lane, uint32_t) { absent.column(lane / 4); });
  uint64_t d[most_rows * columns];
  const auto sum = [](uint32_t lane, uint32_t i) { return place_of(lane, i % 2, i / 2); };
  each_word(
      w, in.ops[c_slot], absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) { d[sum(lane, i)] = value; },
      [&](uint32_t lane, uint32_t i) { absent.sums.set(sum(lane, i)); });
  soft::Rules rules;
  rules.round = in.has(Mod::rz)   ? soft::Round::zero
                : in.has(Mod::rm) ? soft::Round::down
                : in.has(Mod::rp) ? soft::Round::up
                                  : soft::Round::nearest;
  for (uint32_t r = 0; r < rows_of(in); ++r)
    for (uint32_t n = 0; n < columns; ++n)
      for (uint32_t k = 0; k < depth; ++k)
        d[n * most_rows + r] = fused(a[r][k], b[n][k], d[n * most_rows + r], rules);
  const auto& registers = in.ops[d_slot].elements;
  for (uint32_t i = 0; i < registers.size(); ++i) {
    uint64_t* to = accumulator(w, registers[i], i, false, absent);
    for (uint32_t lane = 0; lane < 32; ++lane) to[lane] = d[sum(lane, i)];
  }
  count(w, in, depth);
  return Step::next;
}

// ---- block scales of 12.0: rows take them from two of their four lanes, columns from one -------

struct Scales {
  uint8_t a[most_rows][4], b[columns][4];
};

uint32_t selector(Warp& w, const Operand& pair, size_t i, const char* who) {
  return uint32_t(w.uniform(pair.elements[i], ~0u, who));
}

// A register, in braces or not.
const Operand& bare(const Operand& op) {
  return op.kind == Operand::Kind::vector ? op.elements[0] : op;
}

Scales load_scales(Warp& w, const Instr& in, uint32_t per_row, Absent& absent) {
  Warp::Row sa, sb;
  Warp::Unknown no_a, no_b;
  const uint64_t* a = w.operand(bare(in.ops[sfa_slot]), ~0u, sa, no_a);
  const uint64_t* b = w.operand(bare(in.ops[sfb_slot]), ~0u, sb, no_b);
  const uint32_t byte_a = selector(w, in.ops[ida_slot], 0, in.opcode),
                 thread_a = selector(w, in.ops[ida_slot], 1, in.opcode),
                 byte_b = selector(w, in.ops[idb_slot], 0, in.opcode),
                 thread_b = selector(w, in.ops[idb_slot], 1, in.opcode);
  if (byte_a + per_row > 4 || byte_b + per_row > 4 || byte_a % per_row || byte_b % per_row ||
      thread_a > 1 || thread_b > 3)
    throw Fault(FaultKind::illegal_instruction,
                format("%s: scales from byte %u of thread pair %u and byte %u of thread %u",
                       in.opcode, byte_a, thread_a, byte_b, thread_b));
  for (uint32_t g = 0; g < columns; ++g) {
    for (uint32_t half = 0; half < 2; ++half)
      if (no_a.lanes >> (g * 4 + thread_a * 2 + half) & 1)
        absent.row(g + 8 * half), absent.of = no_a.of;
    if (no_b.lanes >> (g * 4 + thread_b) & 1) absent.column(g), absent.of = no_b.of;
  }
  Scales s;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t of = i * per_row / 4;
    for (uint32_t g = 0; g < columns; ++g) {
      for (uint32_t half = 0; half < 2; ++half)
        s.a[g + 8 * half][i] = uint8_t(a[g * 4 + thread_a * 2 + half] >> 8 * (byte_a + of));
      s.b[g][i] = uint8_t(b[g * 4 + thread_b] >> 8 * (byte_b + of));
    }
  }
  return s;
}

Step scaled_fp8(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  load_small(w, in, tile);
  load_accumulators(w, in, false, tile);
  const Scales s = load_scales(w, in, 1, tile.absent);
  uint8_t sfa[most_rows], sfb[columns];
  for (uint32_t r = 0; r < most_rows; ++r) sfa[r] = s.a[r][0];
  for (uint32_t n = 0; n < columns; ++n) sfb[n] = s.b[n][0];
  DotOperands o = operands(in, tile);
  o.sfa = sfb;
  o.sfb = sfa;
  o.zero_absent = scaled_sum() == ScaledSum::groups;
  mma_dot(o, tile.d, most_rows);
  store_accumulators(w, in, false, tile);
  count(w, in, 32);
  return Step::next;
}

Step scaled_fp4(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  load_operands(w, in, tile);
  load_accumulators(w, in, false, tile);
  const Scales s = load_scales(w, in, in.has(Mod::scale_vec_4X) ? 4 : 2, tile.absent);
  const ScaleType type = in.type(4) == Type::ue4m3 ? ScaleType::ue4m3 : ScaleType::ue8m0;
  mma_block_scaled({tile.b, tile.a, s.b[0], s.a[0], columns, most_rows, type, false, false}, tile.d,
                   most_rows, true, scaled_sum());
  store_accumulators(w, in, false, tile);
  count(w, in, 64);
  return Step::next;
}

}  // namespace

Exec bind_mma_sync(const Instr& in, std::string&) {
  if (in.has(Mod::block_scale)) return in.has(Mod::kind_mxf8f6f4) ? scaled_fp8 : scaled_fp4;
  if (in.has(Mod::kind_f8f6f4) && (ptx::bits_of(in.type(1)) < 8 || ptx::bits_of(in.type(2)) < 8))
    return small_floats;
  switch (in.type(1)) {
    case Type::f64: return doubles;
    case Type::s4:
    case Type::u4: return integers<nibbles>;
    case Type::b1: return integers<bits>;
    case Type::e4m3:
    case Type::e5m2: return dot_as_fp16;
    default: return dot;
  }
}

}  // namespace emu::ops
