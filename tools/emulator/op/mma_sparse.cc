// SPDX-License-Identifier: MIT
// mma.sp of one warp (PTX ISA 9.7.14.6): of every four neighbours of a row of A two are not zero
// and stand in A; the metadata says which. The metadata names units. For 16-bit floats a unit is an
// element (2 bytes), for tf32 half an element (both halves are named), for 8-bit types an element,
// and for 4-bit integers a pair of elements. A's and D's registers are those of mma.sync; register
// i of B has 4 bytes of column lane / 4 from byte 16 i + 4 (lane % 4) on. The sum is that of the
// dense instruction over what stands in A.
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/mma_tile.h"

namespace emu::ops {

namespace {

enum Slot : size_t { d_slot, a_slot, b_slot, c_slot, metadata_slot, selector_slot };

struct Sparse {
  uint8_t a[most_rows * k_bytes] = {}, b[columns * 2 * k_bytes] = {};
  uint32_t unit = 0, chunks = 0;  // bytes; fours of units in a row
};

Sparse load(Warp& w, const Instr& in, Absent& absent) {
  Sparse s;
  const auto row = [](uint32_t lane, uint32_t i) { return lane / 4 + 8 * (i % 2); };
  each_word(
      w, in.ops[a_slot], absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        const uint32_t word = uint32_t(value);
        std::memcpy(&s.a[row(lane, i) * k_bytes + i / 2 * 16 + lane % 4 * 4], &word, 4);
      },
      [&](uint32_t lane, uint32_t i) { absent.row(row(lane, i)); });
  each_word(
      w, in.ops[b_slot], absent,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        const uint32_t word = uint32_t(value);
        std::memcpy(&s.b[lane / 4 * 2 * k_bytes + i * 16 + lane % 4 * 4], &word, 4);
      },
      [&](uint32_t lane, uint32_t) { absent.column(lane / 4); });
  s.unit = ptx::bits_of(in.type(1)) >= 16 ? 2 : 1;
  s.chunks = uint32_t(in.ops[b_slot].elements.size()) * 16 / (4 * s.unit);
  return s;
}

// The four bits of a row and a chunk. The selector chooses which of the four lanes of row % 8 hold
// them: one, two or all. If two do, each has half of the chunks of both rows for units of 16 bits,
// and all chunks of one row for bytes (measured: H200).
struct Metadata {
  const uint64_t* lanes;
  uint32_t selector, chunks, unit;
  uint32_t lane_of(uint32_t row, uint32_t chunk) const {
    const uint32_t first = row % 8 * 4, upper = row / 8;
    if (chunks == 4) return first + selector;
    if (chunks == 8) return first + 2 * selector + (unit == 2 ? chunk / 4 : upper);
    return first + upper + chunk / 8 * 2;
  }
  uint32_t of(uint32_t row, uint32_t chunk) const {
    const bool of_both_rows = chunks == 4 || (chunks == 8 && unit == 2);
    const uint32_t shift = of_both_rows ? 16 * (row / 8) + chunk % 4 * 4 : chunk % 8 * 4;
    return uint32_t(lanes[lane_of(row, chunk)] >> shift) & 15;
  }
  // Whether every element of a row has a value, where the lanes in `missing` have none.
  bool complete(uint32_t row, uint32_t missing) const {
    for (uint32_t chunk = 0; chunk < chunks; ++chunk)
      if (missing >> lane_of(row, chunk) & 1) return false;
    return true;
  }
};

// Which units of the four: two different ones, of tf32 the two halves of one number, and the lower
// first where the metadata is said to be ordered.
void require_valid(const Instr& in, uint32_t code, uint32_t row, uint32_t chunk) {
  const uint32_t first = code & 3, second = code >> 2;
  const bool ordered = std::string_view(in.opcode).find("ordered") != std::string_view::npos;
  const bool right = in.type(1) == Type::tf32 ? code == 0x4 || code == 0xE
                     : ordered                ? first < second
                                              : first != second;
  if (!right)
    throw Fault(FaultKind::illegal_instruction,
                format("%s: the metadata of row %u, chunk %u is %u%u%u%ub, which names no two "
                       "elements of four%s",
                       in.opcode, row, chunk, code >> 3 & 1, code >> 2 & 1, code >> 1 & 1, code & 1,
                       ordered ? " in their order" : ""));
}

// Selects from each column of B what meets the elements of one row of A.
void select(const Instr& in, const Sparse& s, const Metadata& m, uint32_t row, uint8_t* to) {
  for (uint32_t chunk = 0; chunk < s.chunks; ++chunk) {
    const uint32_t code = m.of(row, chunk);
    require_valid(in, code, row, chunk);
    for (uint32_t n = 0; n < columns; ++n)
      for (uint32_t j = 0; j < 2; ++j)
        std::memcpy(&to[n * k_bytes + (2 * chunk + j) * s.unit],
                    &s.b[n * 2 * k_bytes + (4 * chunk + (code >> 2 * j & 3)) * s.unit], s.unit);
  }
}

// One row of D: `d` and every most_rows words from there on.
using RowSum = void (*)(const Instr& in, const uint8_t* a, const uint8_t* b, uint32_t* d);

void plain_row(const Instr& in, const uint8_t* a, const uint8_t* b, uint32_t* d) {
  DotOperands o = operands(in, {});
  o.a = b, o.b = a, o.n = 1;
  mma_dot(o, d, most_rows);
}

// For 9.0 and 10.0: as mma.sync does it (mma_tile.h).
void row_as_fp16(const Instr& in, const uint8_t* a, const uint8_t* b, uint32_t* d) {
  uint8_t wide_a[k_bytes], wide_b[columns * k_bytes];
  uint32_t sum[columns] = {};
  DotOperands o = operands(in, {});
  o.a_type = o.b_type = ElementType::f16;
  o.a = wide_b, o.b = wide_a, o.n = 1;
  for (const uint32_t half : {low, high}) {
    widen(a, 1, half, in.type(1), wide_a);
    widen(b, columns, half, in.type(2), wide_b);
    mma_dot(o, sum, 1);
  }
  for (uint32_t n = 0; n < columns; ++n)
    d[n * most_rows] = uint32_t(soft::add(d[n * most_rows], sum[n], soft::f32));
}

void nibble_row(const Instr& in, const uint8_t* a, const uint8_t* b, uint32_t* d) {
  for (uint32_t n = 0; n < columns; ++n)
    d[n * most_rows] = integer_sum(d[n * most_rows], nibbles(a, b + n * k_bytes, in), in);
}

RowSum row_sum(const Warp& w, const Instr& in) {
  const Type type = in.type(1);
  if (type == Type::s4 || type == Type::u4) return nibble_row;
  const bool eight_bits = type == Type::e4m3 || type == Type::e5m2;
  return eight_bits && w.cta.cluster.launch.compute_capability < 120 ? row_as_fp16 : plain_row;
}

Step sparse(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Tile tile;
  const Sparse s = load(w, in, tile.absent);
  const bool packed = in.type() == Type::f16;
  load_accumulators(w, in, packed, tile);
  Warp::Row scratch;
  Warp::Unknown none;
  const Metadata m{w.operand(in.ops[metadata_slot], ~0u, scratch, none),
                   uint32_t(in.ops[selector_slot].imm), s.chunks, s.unit};
  const RowSum sum = row_sum(w, in);
  for (uint32_t row = 0; row < most_rows; ++row) {
    if (!m.complete(row, none.lanes)) {
      tile.absent.row(row), tile.absent.of = none.of;
      continue;
    }
    uint8_t b[columns * k_bytes] = {};
    select(in, s, m, row, b);
    sum(in, &s.a[row * k_bytes], b, &tile.d[row]);
  }
  store_accumulators(w, in, packed, tile);
  ++w.cta.counters.mmas;
  w.cta.counters.macs +=
      uint64_t(most_rows) * columns * s.chunks * 2 * s.unit * 8 / ptx::bits_of(in.type(1));
  return Step::next;
}

}  // namespace

Exec bind_mma_sp(const Instr&, std::string&) { return sparse; }
Exec bind_mma_sp_ordered(const Instr&, std::string&) { return sparse; }

}  // namespace emu::ops
