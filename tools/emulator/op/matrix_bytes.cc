// SPDX-License-Identifier: MIT
// ldmatrix and stmatrix of matrices of bytes (PTX ISA 9.7.14.5.15, .16). Lane 8 i + r, or 16 i + r,
// holds the address of row r of matrix i, 16 bytes. The manual shows only in figures which element
// a lane gets; the layouts are those of CUTLASS's copy atoms (copy_traits_sm100.hpp). Rows of 4-
// and 6-bit elements become bytes with the element in the low bits (CUTLASS, mma_traits_sm120.hpp:
// a consumer that wants 4 bits in the middle shifts them).
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/matrix.h"
#include "tools/emulator/op/no_value.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint32_t row_bytes = 16, max_rows = 16;

struct Shape {
  uint32_t rows, registers;  // of one matrix: addresses, 32-bit registers of a lane
  bool transposed;
};

Shape shape_of(const Instr& in) {
  if (in.has(Mod::m16n16)) return {16, 2, true};
  return {8, 1, in.has(Mod::m16n8)};
}

struct Element {
  uint32_t row, column;
};

// Byte k of register `reg` of a lane. Transposed, a lane has neighbouring rows of two columns.
Element element_of(const Shape& s, uint32_t lane, uint32_t reg, uint32_t k) {
  if (!s.transposed) return {lane / 4, lane % 4 * 4 + k};
  return {lane % 4 * s.rows / 4 + 2 * reg + k % 2, lane / 4 + k / 2 * 8};
}

uint32_t element_bits(const Instr& in) {
  return in.has(Mod::b4x16_p64) ? 4 : in.has(Mod::b6x16_p32) ? 6 : 8;
}

// A row of elements, and which of them have no value.
struct Row {
  Bytes from;
  uint8_t elements[row_bytes] = {};
  uint32_t missing = 0;

  // The padding after a row of smaller elements may have no value.
  void read(Warp& w, const Instr& in, uint32_t lane) {
    const uint32_t bits = element_bits(in), bytes = row_bytes * bits / 8;
    from = locate(w, lane, space_named(in), w.address(in.ops[1], lane), row_bytes, in.opcode)
               .open(in, bytes, Use::read);
    uint8_t packed[row_bytes + 1] = {};
    uint32_t known = 0;
    for (uint32_t i = 0; i < bytes; ++i)
      if (from.has_value(i, 1, in.opcode)) {
        packed[i] = uint8_t(from.read(i, 1, in.opcode));
        known |= 1u << i;
      }
    for (uint32_t i = 0; i < row_bytes; ++i) {
      const uint32_t first = i * bits / 8, last = (i * bits + bits - 1) / 8;
      const uint32_t pair = packed[first] | uint32_t(packed[first + 1]) << 8;
      elements[i] = uint8_t(pair >> i * bits % 8 & ((1u << bits) - 1));
      missing |= ((known >> first & known >> last & 1) ^ 1) << i;
    }
  }
};

Step load(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  const auto& d = in.ops[0].elements;
  for (uint32_t i = 0; i < d.size() / s.registers; ++i) {
    Row matrix[max_rows];
    for (uint32_t r = 0; r < s.rows; ++r) matrix[r].read(w, in, i * s.rows + r);
    for (uint32_t reg = 0; reg < s.registers; ++reg)
      for_lanes(active, [&](uint32_t lane) {
        const Operand& to = d[i * s.registers + reg];
        uint32_t value = 0;
        for (uint32_t k = 0; k < 4; ++k) {
          const Element e = element_of(s, lane, reg, k);
          const Row& row = matrix[e.row];
          if (row.missing >> e.column & 1)
            return w.undefine(to, 1u << lane,
                              why_loaded_none(in, row.from, e.column * element_bits(in) / 8, 1));
          value |= uint32_t(row.elements[e.column]) << 8 * k;
        }
        w.set(to, lane, value);
      });
  }
  return Step::next;
}

Step store(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  const auto& values = in.ops[1].elements;
  for (uint32_t i = 0; i < values.size(); ++i) {
    uint64_t matrix[max_rows][2] = {};
    uint32_t missing[max_rows] = {};  // elements
    const uint32_t known = w.defined(values[i], active);
    for_lanes(active, [&](uint32_t lane) {
      const uint64_t value = known >> lane & 1 ? w.get(values[i], lane) : 0;
      for (uint32_t k = 0; k < 4; ++k) {
        const Element e = element_of(s, lane, 0, k);
        matrix[e.row][e.column / 8] |= (value >> 8 * k & 0xFF) << e.column % 8 * 8;
        missing[e.row] |= (~known >> lane & 1) << e.column;
      }
    });
    for (uint32_t r = 0; r < s.rows; ++r) {
      const uint32_t lane = i * s.rows + r;
      const Place row =
          locate(w, lane, space_named(in), w.address(in.ops[0], lane), row_bytes, in.opcode);
      const Bytes to = row.open(in, row_bytes, Use::write);
      for (uint32_t half = 0; half < 2; ++half) to.write(half * 8, 8, matrix[r][half], in.opcode);
      for_lanes(missing[r], [&](uint32_t k) {
        to.forget(k, 1, in.opcode, why_stored_none(w, in, values[i], to.place(), active & ~known));
      });
    }
  }
  return Step::next;
}

}  // namespace

Exec load_bytes_matrix(const Instr& in) {
  return in.has(Mod::m16n16) || in.has(Mod::m8n16) ? load : nullptr;
}
Exec store_bytes_matrix(const Instr& in) { return in.has(Mod::m16n8) ? store : nullptr; }

}  // namespace emu::ops
