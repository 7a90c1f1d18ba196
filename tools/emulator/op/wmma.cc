// SPDX-License-Identifier: MIT
// wmma (PTX ISA 9.7.14.4). The manual leaves open which lane holds what of a fragment; here it is
// what ptxas makes of it for sm_90, where every wmma is a few mma.sync: shapes are cut into parts
// of 16 (or, with m8n8, 8) lines of one matrix and 8 of the other, the fragments of parts follow
// each other, and for fp16 the remaining registers repeat the first ones. m8n32k16 is the product
// transposed: B has the 16 lines. A line is a row of A or a column of B.
#include <algorithm>
#include <bitset>

#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/mma_tile.h"
#include "tools/emulator/op/no_value.h"

namespace emu::ops {

namespace {

struct Shape {
  uint32_t m, n, k;
  bool transposed() const { return m == 8 && n == 32; }
  uint32_t halves() const { return m == 8 && n == 8 ? 1 : 2; }  // of eight lines in a part
};
Shape shape_of(const Instr& in) {
  if (in.has(Mod::m16n16k16)) return {16, 16, 16};
  if (in.has(Mod::m32n8k16)) return {32, 8, 16};
  if (in.has(Mod::m8n32k16)) return {8, 32, 16};
  if (in.has(Mod::m16n16k8)) return {16, 16, 8};
  if (in.has(Mod::m8n8k4)) return {8, 8, 4};
  return {8, 8, in.has(Mod::m8n8k32) ? 32u : 128u};
}

enum class Matrix : uint8_t { a, b, accumulator };

uint32_t register_bytes(Type t) { return t == Type::f64 ? 8 : 4; }

// ---- operands: registers hold 4 bytes of a line, f64 8 -----------------------------------------

struct Fragment {
  bool tall;  // in parts of 16 lines
  // halves: groups of eight lines in a part; words: its registers along K; bytes: of a register
  uint32_t halves, words, bytes;
  uint32_t per_part() const { return (tall ? halves : 1) * words; }
};
Fragment fragment(const Shape& s, Matrix which, Type type) {
  const uint32_t bytes = register_bytes(type);
  return {(which == Matrix::a) != s.transposed(), s.halves(),
          s.k * ptx::bits_of(type) / 8 / (4 * bytes), bytes};
}

struct Spot {
  uint32_t line, byte;
};
Spot spot_of(const Fragment& f, uint32_t lane, uint32_t i) {
  const uint32_t part = i / f.per_part(), j = i % f.per_part(), lines = f.tall ? f.halves : 1;
  return {(part * lines + j % lines) * 8 + lane / 4, (4 * (j / lines) + lane % 4) * f.bytes};
}

// The registers that no later one repeats.
uint32_t distinct(const Shape& s, Matrix which, const Fragment& f) {
  return (which == Matrix::a ? s.m : s.n) / 8 * f.words;
}

// ---- accumulators: two neighbours of a line of the tall matrix ---------------------------------

struct Element {
  uint32_t row, column;
};
// Element h of register i: a register of fp16 has two.
Element element_of(const Shape& s, bool packed, uint32_t lane, uint32_t i, uint32_t h) {
  const uint32_t at = packed ? 2 * i + h : i, per_part = 2 * s.halves();
  const uint32_t part = at / per_part, j = at % per_part;
  const bool tall_parts = s.m == 32 || s.transposed();
  const uint32_t tall = lane / 4 + 8 * (j / 2) + (tall_parts ? 16 * part : 0),
                 narrow = lane % 4 * 2 + j % 2 + (tall_parts ? 0 : 8 * part);
  return s.transposed() ? Element{narrow, tall} : Element{tall, narrow};
}

// ---- memory ------------------------------------------------------------------------------------

// A matrix in memory: where its lines, or for accumulators its rows, begin.
struct Array {
  uint64_t address;
  uint32_t stride;  // elements
  bool along;       // neighbours of a line (row) are neighbours in memory
  uint32_t bits;    // of an element
  uint64_t of(uint32_t line, uint32_t element) const {
    const uint64_t index =
        along ? uint64_t(line) * stride + element : uint64_t(element) * stride + line;
    return address + index * bits / 8;
  }
};

// The manual requires each line to be aligned to the bytes of a thread's fragment (9.7.14.4.3),
// which matrices of 8 columns are not. CUDA's guide requires lines of whole 16 bytes, and so does
// this.
Array array(Warp& w, const Instr& in, const Operand& address, size_t stride_slot, bool along,
            uint32_t length) {
  uint32_t stride = length;
  if (stride_slot < in.ops.size())
    stride = uint32_t(w.uniform(in.ops[stride_slot], ~0u, in.opcode));
  const uint64_t at = w.address(address, 0);
  for (uint32_t lane = 1; lane < 32; ++lane)
    if (w.address(address, lane) != at)
      throw Fault(FaultKind::illegal_instruction,
                  format("%s: lanes 0 and %u have different addresses", in.opcode, lane));
  const uint32_t bits = ptx::bits_of(in.type()), unit = std::min(16u, length * bits / 8);
  if (at % unit || uint64_t(stride) * bits / 8 % unit)
    throw Fault(FaultKind::misaligned_address,
                format("%s: a matrix at 0x%llx with lines of %u elements; each is to begin at a "
                       "multiple of %u bytes",
                       in.opcode, (unsigned long long)at, stride, unit));
  return {at, stride, along, bits};
}

bool row_major(const Instr& in) { return in.has(Mod::row); }

Array operand_array(Warp& w, const Instr& in, Matrix which) {
  const Shape s = shape_of(in);
  const bool along = row_major(in) == (which == Matrix::a);
  const uint32_t lines = which == Matrix::a ? s.m : s.n;
  return array(w, in, in.ops[1], 2, along, along ? s.k : lines);
}

// What a register of a fragment is loaded with, piece by piece.
struct Loaded {
  uint64_t value = 0;
  std::optional<Reason> none;  // a piece has no value

  void piece(Warp& w, const Instr& in, uint32_t lane, uint64_t address, uint32_t bytes,
             uint32_t shift) {
    const Bytes from =
        locate(w, lane, space_named(in), address, bytes, in.opcode).open(in, bytes, Use::read);
    if (from.has_value(0, bytes, in.opcode))
      value |= from.read(0, bytes, in.opcode) << shift;
    else
      none = why_loaded_none(in, from, 0, bytes);
  }
  void set(Warp& w, const Operand& to, uint32_t lane) const {
    if (none)
      w.undefine(to, 1u << lane, *none);
    else
      w.set(to, lane, value);
  }
};

// Half `h` of a register where it is `packed`, else all of it.
void write(Warp& w, const Instr& in, uint32_t lane, uint64_t address, uint32_t bytes,
           const Operand& reg, bool packed, uint32_t h) {
  const bool known = w.defined(reg, 1u << lane);
  const uint64_t all = known ? w.get(reg, lane) : 0, v = packed ? all >> 16 * h & 0xFFFF : all;
  const Place at = locate(w, lane, space_named(in), address, bytes, in.opcode);
  const Bytes to = at.open(in, bytes, Use::write, &v);
  if (known)
    to.write(0, bytes, v, in.opcode);
  else
    to.forget(0, bytes, in.opcode, why_stored_none(w, in, reg, at, 1u << lane));
}

template <Matrix which>
Step load(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  const Fragment f = fragment(s, which, in.type());
  const Array from = operand_array(w, in, which);
  const uint32_t step = from.along ? f.bytes : from.bits / 8, used = distinct(s, which, f);
  const std::vector<Operand>& d = in.ops[0].elements;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    Loaded words[8];
    for (uint32_t i = 0; i < used; ++i) {
      const Spot at = spot_of(f, lane, i);
      for (uint32_t byte = 0; byte < f.bytes; byte += step)
        words[i].piece(w, in, lane, from.of(at.line, (at.byte + byte) * 8 / from.bits), step,
                       8 * byte);
    }
    for (uint32_t i = 0; i < d.size(); ++i) words[i % used].set(w, d[i], lane);
  }
  return Step::next;
}

Array accumulator_array(Warp& w, const Instr& in, const Operand& address) {
  const Shape s = shape_of(in);
  return array(w, in, address, 2, row_major(in), row_major(in) ? s.n : s.m);
}

uint64_t place(const Array& to, const Element& e) { return to.of(e.row, e.column); }

Step load_accumulator(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const std::vector<Operand>& d = in.ops[0].elements;
  const Shape s = shape_of(in);
  const bool packed = in.type() == Type::f16;
  const Array from = accumulator_array(w, in, in.ops[1]);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < d.size(); ++i) {
      Loaded word;
      for (uint32_t h = 0; h < (packed ? 2u : 1u); ++h)
        word.piece(w, in, lane, place(from, element_of(s, packed, lane, i, h)), from.bits / 8,
                   16 * h);
      word.set(w, d[i], lane);
    }
  return Step::next;
}

Step store(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const std::vector<Operand>& values = in.ops[1].elements;
  const Shape s = shape_of(in);
  const bool packed = in.type() == Type::f16;
  const Array to = accumulator_array(w, in, in.ops[0]);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < values.size(); ++i)
      for (uint32_t h = 0; h < (packed ? 2u : 1u); ++h)
        write(w, in, lane, place(to, element_of(s, packed, lane, i, h)), to.bits / 8, values[i],
              packed, h);
  return Step::next;
}

// ---- the product -------------------------------------------------------------------------------

constexpr uint32_t most_lines = 32;
enum Slot : size_t { d_slot, a_slot, b_slot, c_slot };

// For fp16 only the types of D and C are written.
Type operand_type(const Instr& in) { return in.type_count == 2 ? Type::f16 : in.type(1); }

struct Lines {
  uint8_t bytes[most_lines * k_bytes] = {};
  const uint8_t* line(uint32_t i) const { return &bytes[i * k_bytes]; }
};

// The sums that have no value, since one of their operands has none.
struct Lost {
  std::bitset<most_lines * most_lines> sums;  // row by row
  const Operand* of = nullptr;                // one of the registers without a value
  void sum(const Element& e) { sums.set(e.row * most_lines + e.column); }
  bool has(const Element& e) const { return sums[e.row * most_lines + e.column]; }
  void line(Matrix which, uint32_t line) {
    for (uint32_t i = 0; i < most_lines; ++i)
      sum(which == Matrix::a ? Element{line, i} : Element{i, line});
  }
};

void gather(Warp& w, const Instr& in, Matrix which, Lines& to, Lost& lost) {
  const Shape s = shape_of(in);
  const Fragment f = fragment(s, which, operand_type(in));
  const uint32_t used = distinct(s, which, f);
  each_word(
      w, in.ops[which == Matrix::a ? a_slot : b_slot], lost,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        if (i >= used) return;
        const Spot at = spot_of(f, lane, i);
        std::memcpy(&to.bytes[at.line * k_bytes + at.byte], &value, f.bytes);
      },
      [&](uint32_t lane, uint32_t i) {
        if (i < used) lost.line(which, spot_of(f, lane, i).line);
      });
}

// Row by row.
template <class T>
struct Accumulators {
  T word[most_lines * most_lines];
  T& at(const Element& e) { return word[e.row * most_lines + e.column]; }
};

bool is_packed(const Instr& in, Slot slot) {
  return in.type(slot == d_slot ? 0 : in.type_count - 1) == Type::f16;
}

template <class T>
void load_c(Warp& w, const Instr& in, Accumulators<T>& to, Lost& lost) {
  const Shape s = shape_of(in);
  const bool packed = is_packed(in, c_slot);
  const auto element = [=](uint32_t lane, uint32_t i, uint32_t h) {
    return element_of(s, packed, lane, i, h);
  };
  each_word(
      w, in.ops[c_slot], lost,
      [&](uint32_t lane, uint32_t i, uint64_t value) {
        to.at(element(lane, i, 0)) = T(packed ? value & 0xFFFF : value);
        if (packed) to.at(element(lane, i, 1)) = T(value >> 16 & 0xFFFF);
      },
      [&](uint32_t lane, uint32_t i) {
        lost.sum(element(lane, i, 0));
        if (packed) lost.sum(element(lane, i, 1));
      });
}

template <class T>
void store_d(Warp& w, const Instr& in, Accumulators<T>& from, const Lost& lost) {
  const Shape s = shape_of(in);
  const bool packed = is_packed(in, d_slot);
  const auto& registers = in.ops[d_slot].elements;
  for (uint32_t i = 0; i < registers.size(); ++i) {
    Warp::Unknown unknown{0, lost.of};
    for (uint32_t lane = 0; lost.sums.any() && lane < 32; ++lane)
      for (uint32_t h = 0; h < (packed ? 2u : 1u); ++h)
        unknown.lanes |= uint32_t(lost.has(element_of(s, packed, lane, i, h))) << lane;
    uint64_t* d = w.result(registers[i], ~0u, unknown);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      d[lane] = from.at(element_of(s, packed, lane, i, 0));
      if (packed) d[lane] |= uint64_t(from.at(element_of(s, packed, lane, i, 1))) << 16;
    }
  }
  ++w.cta.counters.mmas;
  w.cta.counters.macs += uint64_t(s.m) * s.n * s.k;
}

// f(accumulator) for all of them.
template <class T, class F>
void each(const Shape& s, Accumulators<T>& d, F f) {
  for (uint32_t r = 0; r < s.m; ++r)
    for (uint32_t n = 0; n < s.n; ++n) f(d.at({r, n}));
}

// The types decide what one step of the tensor core is. tf32 takes four elements of K at a time.
// fp16 is added to fp32 where C or D is fp32, and rounded once more for a D of fp16.
Step dot(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  const bool c_packed = is_packed(in, c_slot), d_packed = is_packed(in, d_slot);
  const Type type = operand_type(in);
  Lines a, b;
  Lost lost;
  gather(w, in, Matrix::a, a, lost);
  gather(w, in, Matrix::b, b, lost);
  Accumulators<uint32_t> d{};
  load_c(w, in, d, lost);
  DotOperands o{};
  o.rows = s.m, o.n = s.n;
  o.a_type = o.b_type = element_type(type);
  o.d_type = type == Type::s8 || type == Type::u8 ? AccumulatorType::s32
             : c_packed && d_packed               ? AccumulatorType::f16
                                                  : AccumulatorType::f32;
  o.saturate = in.has(Mod::satfinite);
  o.accumulate = true;
  o.zero_raises = false;  // as on an H200: mma_dot.h
  if (c_packed && !d_packed)
    each(s, d, [](uint32_t& x) { x = uint32_t(soft::convert(x, soft::f16, soft::f32)); });
  const uint32_t step = type == Type::tf32 ? k_bytes / 2 : k_bytes;
  for (uint32_t first = 0; first < k_bytes; first += step) {
    Lines part_a, part_b;
    for (uint32_t i = 0; i < most_lines; ++i) {
      std::memcpy(&part_a.bytes[i * k_bytes], a.line(i) + first, step);
      std::memcpy(&part_b.bytes[i * k_bytes], b.line(i) + first, step);
    }
    o.a = part_a.bytes, o.b = part_b.bytes;
    mma_dot(o, d.word, most_lines);
  }
  if (d_packed && !c_packed)
    each(s, d, [](uint32_t& x) { x = uint32_t(soft::convert(x, soft::f32, soft::f16)); });
  store_d(w, in, d, lost);
  return Step::next;
}

template <auto Products>
Step integers(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  Lines a, b;
  Lost lost;
  gather(w, in, Matrix::a, a, lost);
  gather(w, in, Matrix::b, b, lost);
  Accumulators<uint32_t> d{};
  load_c(w, in, d, lost);
  for (uint32_t r = 0; r < s.m; ++r)
    for (uint32_t n = 0; n < s.n; ++n)
      d.at({r, n}) = integer_sum(d.at({r, n}), Products(a.line(r), b.line(n), in), in);
  store_d(w, in, d, lost);
  return Step::next;
}

// One fused multiply-add after the other, in the order of k.
Step doubles(Warp& w, const Instr& in, uint32_t active) {
  w.require_whole(active, in.opcode);
  const Shape s = shape_of(in);
  Lines a, b;
  Lost lost;
  gather(w, in, Matrix::a, a, lost);
  gather(w, in, Matrix::b, b, lost);
  Accumulators<uint64_t> d{};
  load_c(w, in, d, lost);
  soft::Rules rules;
  rules.round = in.has(Mod::rz)   ? soft::Round::zero
                : in.has(Mod::rm) ? soft::Round::down
                : in.has(Mod::rp) ? soft::Round::up
                                  : soft::Round::nearest;
  const auto element = [](const Lines& from, uint32_t line, uint32_t k) {
    uint64_t value;
    std::memcpy(&value, from.line(line) + 8 * k, 8);
    return value;
  };
  for (uint32_t r = 0; r < s.m; ++r)
    for (uint32_t n = 0; n < s.n; ++n)
      for (uint32_t k = 0; k < s.k; ++k)
        d.at({r, n}) = fused(element(a, r, k), element(b, n, k), d.at({r, n}), rules);
  store_d(w, in, d, lost);
  return Step::next;
}

}  // namespace

Exec bind_wmma_load_a(const Instr&, std::string&) { return load<Matrix::a>; }
Exec bind_wmma_load_b(const Instr&, std::string&) { return load<Matrix::b>; }
Exec bind_wmma_load_c(const Instr&, std::string&) { return load_accumulator; }
Exec bind_wmma_store_d(const Instr&, std::string&) { return store; }
Exec bind_wmma_mma(const Instr& in, std::string&) {
  switch (operand_type(in)) {
    case Type::f64: return doubles;
    case Type::s4:
    case Type::u4: return integers<nibbles>;
    case Type::b1: return integers<bits>;
    default: return dot;
  }
}

}  // namespace emu::ops
