// SPDX-License-Identifier: MIT
// ldmatrix, stmatrix and movmatrix of 8x8 matrices of 16-bit elements (PTX ISA 9.7.14.5.15, .16):
// lane 8 i + r holds the address of row r of matrix i; lane l has the elements 2 (l % 4) and the
// next of row l / 4, or with .trans of column l / 4.
#include "tools/emulator/op/matrix.h"
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/no_value.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint32_t rows = 8, row_bytes = 16;

// The rows of all matrices.
struct Rows {
  Bytes place[4 * rows];
};

void locate_rows(Warp& w, const Instr& in, const Operand& address, uint32_t count, Use use,
                 Rows& out) {
  for (uint32_t i = 0; i < count * rows; ++i) {
    const Place at = locate(w, i, space_named(in), w.address(address, i), row_bytes, in.opcode);
    out.place[i] = at.open(in, row_bytes, use);
  }
}

// Where half `h` of lane l's register lies in its matrix.
struct Element {
  uint32_t row, column;
};
Element element_of(uint32_t lane, uint32_t h, bool transposed) {
  const uint32_t outer = lane / 4, inner = lane % 4 * 2 + h;
  return transposed ? Element{inner, outer} : Element{outer, inner};
}

// A row of eight elements, and which of them have no value.
struct Row {
  uint16_t elements[8] = {};
  uint32_t missing = 0;

  void read(const Bytes& from, const char* who) {
    const bool whole = from.has_value(0, row_bytes, who);
    for (uint32_t half = 0; whole && half < 2; ++half) {
      const uint64_t word = from.read(half * 8, 8, who);
      for (uint32_t k = 0; k < 4; ++k) elements[half * 4 + k] = uint16_t(word >> 16 * k);
    }
    for (uint32_t k = 0; !whole && k < 8; ++k)
      if (from.has_value(2 * k, 2, who))
        elements[k] = uint16_t(from.read(2 * k, 2, who));
      else
        missing |= 1u << k;
  }
};

Step load(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const std::vector<Operand>& d = in.ops[0].elements;
  const bool transposed = in.has(Mod::trans);
  Rows from;
  locate_rows(w, in, in.ops[1], uint32_t(d.size()), Use::read, from);
  for (uint32_t i = 0; i < d.size(); ++i) {
    Row matrix[rows];
    for (uint32_t r = 0; r < rows; ++r) matrix[r].read(from.place[i * rows + r], in.opcode);
    for_lanes(active, [&](uint32_t lane) {
      uint32_t value = 0;
      for (const uint32_t h : {0, 1}) {
        const Element e = element_of(lane, h, transposed);
        if (matrix[e.row].missing >> e.column & 1)
          return w.undefine(d[i], 1u << lane,
                            why_loaded_none(in, from.place[i * rows + e.row], 2 * e.column, 2));
        value |= uint32_t(matrix[e.row].elements[e.column]) << 16 * h;
      }
      w.set(d[i], lane, value);
    });
  }
  return Step::next;
}

Step store(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const std::vector<Operand>& values = in.ops[1].elements;
  const bool transposed = in.has(Mod::trans);
  Rows to;
  locate_rows(w, in, in.ops[0], uint32_t(values.size()), Use::write, to);
  for (uint32_t i = 0; i < values.size(); ++i) {
    uint64_t matrix[rows][2] = {};
    uint32_t missing[rows] = {};  // elements
    const uint32_t known = w.defined(values[i], active);
    for_lanes(active, [&](uint32_t lane) {
      const uint64_t value = known >> lane & 1 ? w.get(values[i], lane) : 0;
      for (uint32_t h = 0; h < 2; ++h) {
        const Element e = element_of(lane, h, transposed);
        matrix[e.row][e.column / 4] |= (value >> 16 * h & 0xFFFF) << e.column % 4 * 16;
        missing[e.row] |= (~known >> lane & 1) << e.column;
      }
    });
    for (uint32_t r = 0; r < rows; ++r) {
      const Bytes& row = to.place[i * rows + r];
      for (uint32_t half = 0; half < 2; ++half) row.write(half * 8, 8, matrix[r][half], in.opcode);
      for_lanes(missing[r], [&](uint32_t k) {
        row.forget(2 * k, 2, in.opcode,
                   why_stored_none(w, in, values[i], row.place(), active & ~known));
      });
    }
  }
  return Step::next;
}

// Each lane's half is found in the lane that holds the transposed place.
Step transpose(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  Warp::Row scratch;
  Warp::Unknown unknown;
  const uint64_t* source = w.operand(in.ops[1], active, scratch, unknown);
  uint32_t value[32] = {}, missing = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t h = 0; h < 2; ++h) {
      const Element e = element_of(lane, h, true);
      const uint32_t from = e.row * 4 + e.column / 2;
      value[lane] |= uint32_t(source[from] >> 16 * (e.column % 2) & 0xFFFF) << 16 * h;
      missing |= (unknown.lanes >> from & 1) << lane;
    }
  uint64_t* d = w.result(in.ops[0], active, {missing, unknown.of});
  for_lanes(active, [&](uint32_t i) { d[i] = value[i]; });
  return Step::next;
}

}  // namespace

Exec bind_ldmatrix(const Instr& in, std::string&) {
  const Exec bytes = load_bytes_matrix(in);
  return bytes ? bytes : load;
}
Exec bind_movmatrix(const Instr&, std::string&) { return transpose; }
Exec bind_stmatrix(const Instr& in, std::string&) {
  const Exec bytes = store_bytes_matrix(in);
  return bytes ? bytes : store;
}

}  // namespace emu::ops
