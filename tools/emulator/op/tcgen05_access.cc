// SPDX-License-Identifier: MIT
// tcgen05.ld, st and wait. An ld or st takes effect at once or at the wait, as the run's order
// says: a program that waits cannot tell, one that does not gets caught.
//
// A cell that was never written gives a register no value, which is a fault only when the register
// is used: kernels known to be right load whole tiles and drop what lies beside the result.
#include <bit>

#include "tools/emulator/hardware/tensor_access.h"
#include "tools/emulator/machine/async_work.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/machine/tensor_columns.h"
#include "tools/emulator/op/binders.h"

namespace emu::ops {
namespace {

using ptx::Instr;
using ptx::Mod;
using ptx::Operand;
using ptx::Step;

AccessShape shape_of(const Instr& in) {
  if (in.has(Mod::shape_16x64b)) return AccessShape::s16x64b;
  if (in.has(Mod::shape_16x128b)) return AccessShape::s16x128b;
  if (in.has(Mod::shape_16x256b)) return AccessShape::s16x256b;
  if (in.has(Mod::shape_16x32bx2)) return AccessShape::s16x32bx2;
  return AccessShape::s32x32b;
}

// One ld or st of a warp: which cells its registers are. With .pack::16b or .unpack::16b a register
// is the low halves of two neighbouring columns, the first one low (CUTLASS's copy traits; PTX
// ISA 9.7.16.8.2 has it as a figure).
struct Access {
  AccessShape shape;
  uint32_t lane, column, split, registers;
  bool packed;

  Cell cell(uint32_t t, uint32_t reg) const {
    const Cell c = access_cell(shape, t, reg, packed ? 0 : split);
    if (!packed) return {lane + c.lane, column + c.column};
    const bool second = shape == AccessShape::s16x32bx2 && t >= 16;
    return {lane + c.lane, column + 2 * c.column + (second ? split : 0)};
  }
  // Groups of 16 lanes, as hazard checks know them.
  uint16_t groups() const {
    return uint16_t((shape == AccessShape::s32x32b ? 3u : 1u) << lane / 16);
  }
  uint32_t columns_of_cell() const { return packed ? 2 : 1; }
  uint64_t bytes() const { return uint64_t(registers) * 32 * 4; }
  // Calls f(first column, count) for the columns that are touched. The 32 cells of a register are
  // one column in .32x32b. In the other shapes they are two columns of 16 lanes, which are
  // neighbours except in .16x32bx2.
  template <class F>
  void columns(F f) const {
    const bool single = shape == AccessShape::s32x32b || shape == AccessShape::s16x32bx2;
    const uint32_t count = (single ? registers : 2 * registers) * columns_of_cell();
    f(column, count);
    if (shape == AccessShape::s16x32bx2) f(column + split, count);
  }
};

Access access(Warp& warp, const Instr& in, uint32_t active, const Operand& address,
              const Operand& registers, const Operand* split) {
  warp.require_aligned(active, in.opcode);
  const uint32_t at = uint32_t(warp.uniform(address, active, in.opcode));
  const AccessShape shape = shape_of(in);
  if (names_no_quarter(at, warp.index))
    report::formal(
        report::Rule::first_quarter,
        format("%s at tensor memory address 0x%08x, whose lane belongs to the first warp "
               "of a warpgroup: warp %u gets those from lane %u",
               in.opcode, at, warp.index, 32 * (warp.index % 4)),
        warp, in, active);
  Access a{shape,
           access_lane(shape, at, warp.index, in.opcode),
           TensorMemory::column_of(at),
           split ? uint32_t(split->imm) : 0,
           uint32_t(registers.elements.size()),
           in.has(Mod::pack_16b) || in.has(Mod::unpack_16b)};
  const TensorColumns allocated(warp.cta);
  a.columns([&](uint32_t c, uint32_t n) { allocated.require(c, n, in.opcode); });
  return a;
}

TensorMemory& cells(Warp& warp, const Access& a, Work kind, Use use) {
  const AsyncWork work(warp, kind, every_lane);
  TensorMemory* tensor = nullptr;
  a.columns([&](uint32_t c, uint32_t n) {
    tensor = &work.columns({warp.cta, c, n, a.groups()}, use);
  });
  return *tensor;
}

struct Loaded {
  std::vector<uint32_t> values;   // register * 32 + thread
  std::vector<uint32_t> missing;  // per register: threads whose cell holds no value
  std::string why = {};
};

Loaded read_cells(const TensorMemory& tensor, const Access& a) {
  Loaded loaded{std::vector<uint32_t>(a.registers * 32), std::vector<uint32_t>(a.registers)};
  for (uint32_t r = 0; r < a.registers; ++r)
    for (uint32_t t = 0; t < 32; ++t) {
      const Cell c = a.cell(t, r);
      tensor.require(c.column, a.columns_of_cell(), "tcgen05.ld");
      bool missing = false;
      for (uint32_t i = 0; i < a.columns_of_cell() && !missing; ++i)
        if (missing = !tensor.has_value(c.lane, c.column + i); missing && loaded.why.empty())
          loaded.why = tensor.why_none(c.lane, c.column + i);
      if (missing) {
        loaded.missing[r] |= 1u << t;
        continue;
      }
      uint32_t& value = loaded.values[r * 32 + t];
      value = tensor.read(c.lane, c.column, "tcgen05.ld");
      if (a.packed)
        value = (value & 0xFFFF) | tensor.read(c.lane, c.column + 1, "tcgen05.ld") << 16;
    }
  return loaded;
}

// What a store writes, by register and thread.
struct Stored {
  std::vector<uint32_t> values;
  std::vector<uint32_t> missing;  // per register: the threads whose register has no value
  std::string why;                // of one of them
};

void write_cells(TensorMemory& tensor, const Access& a, const Stored& stored) {
  for (uint32_t r = 0; r < a.registers; ++r)
    for (uint32_t t = 0; t < 32; ++t) {
      const Cell c = a.cell(t, r);
      const uint32_t value = stored.values[r * 32 + t];
      tensor.write(c.lane, c.column, a.packed ? value & 0xFFFF : value, "tcgen05.st");
      if (a.packed) tensor.write(c.lane, c.column + 1, value >> 16, "tcgen05.st");
      for (uint32_t i = 0; stored.missing[r] >> t & 1 && i < a.columns_of_cell(); ++i)
        tensor.lose(c.lane, c.column + i, stored.why);
    }
}

Stored stored_by(const Warp& warp, const Instr& in, uint32_t active, const Access& a) {
  const Operand& registers = in.ops.back();
  Stored stored{std::vector<uint32_t>(a.registers * 32), std::vector<uint32_t>(a.registers), ""};
  for (uint32_t r = 0; r < a.registers; ++r) {
    const Operand& from = registers.elements[r];
    const uint32_t known = warp.defined(from, active);
    stored.missing[r] = active & ~known;
    if (stored.missing[r])
      stored.why = format("PTX line %u stores none there: ", in.pos.line) +
                   warp.none_in(from, stored.missing[r]);
    glue::each_lane(known,
                    [&](uint32_t t) { stored.values[r * 32 + t] = uint32_t(warp.get(from, t)); });
  }
  return stored;
}

void set_registers(Warp& warp, const Operand& registers, uint32_t active, const Access& a,
                   const Loaded& loaded) {
  for (uint32_t r = 0; r < a.registers; ++r) {
    const Operand& to = registers.elements[r];
    glue::each_lane(active, [&](uint32_t t) { warp.set(to, t, loaded.values[r * 32 + t]); });
    if (const uint32_t missing = loaded.missing[r] & active) {
      const Cell c = a.cell(uint32_t(std::countr_zero(missing)), r);
      warp.undefine(to, missing,
                    {format("a tcgen05.ld gave it tensor memory lane %u column %u, which holds no "
                            "value: ",
                            c.lane, c.column) +
                     loaded.why});
    }
  }
}

Step load(Warp& warp, const Instr& in, uint32_t active) {
  const Operand* registers = &in.ops[0];
  const Access a =
      access(warp, in, active, in.ops[1], *registers, in.ops.size() > 2 ? &in.ops[2] : nullptr);
  Cta& cta = warp.cta;
  cta.counters.tensor_load_bytes += a.bytes();
  const TensorMemory& tensor = cells(warp, a, Work::tensor_ld, Use::read);
  Loaded early;
  if (!cta.cluster.async.late()) early = read_cells(tensor, a);
  warp.unused_ld.emplace_back();
  for (const Operand& r : registers->elements) {
    warp.set_pending(r, active);
    if (r.kind == Operand::Kind::reg) warp.unused_ld.back().push_back(r.reg);
  }
  warp.pending_ld.push_back([&warp, &tensor, registers, active, a, early = std::move(early)] {
    set_registers(warp, *registers, active, a,
                  early.values.empty() ? read_cells(tensor, a) : early);
  });
  return Step::next;
}

Step store(Warp& warp, const Instr& in, uint32_t active) {
  const Operand& registers = in.ops.back();
  const Access a =
      access(warp, in, active, in.ops[0], registers, in.ops.size() > 2 ? &in.ops[1] : nullptr);
  TensorMemory& tensor = cells(warp, a, Work::tensor_st, Use::write);
  warp.cta.counters.tensor_store_bytes += a.bytes();
  Stored stored = stored_by(warp, in, active, a);
  if (!warp.cta.cluster.async.late()) {
    write_cells(tensor, a, stored);
    return Step::next;
  }
  warp.pending_st.push_back(
      [&tensor, a, stored = std::move(stored)] { write_cells(tensor, a, stored); });
  return Step::next;
}

Step run_all(Warp& warp, const Instr& in, uint32_t active,
             std::vector<std::function<void()>>& work) {
  warp.require_aligned(active, in.opcode);
  for (const auto& w : work) w();
  work.clear();
  return Step::next;
}

Step wait_ld(Warp& warp, const Instr& in, uint32_t active) {
  warp.cta.cluster.observers.tell(event::TensorAwaited{Work::tensor_ld});
  warp.unused_ld.clear();
  return run_all(warp, in, active, warp.pending_ld);
}
Step wait_st(Warp& warp, const Instr& in, uint32_t active) {
  warp.cta.cluster.observers.tell(event::TensorAwaited{Work::tensor_st});
  return run_all(warp, in, active, warp.pending_st);
}

}  // namespace

ptx::Exec bind_tcgen05_ld(const Instr&, std::string&) { return load; }
ptx::Exec bind_tcgen05_st(const Instr&, std::string&) { return store; }
ptx::Exec bind_tcgen05_wait_ld(const Instr&, std::string&) { return wait_ld; }
ptx::Exec bind_tcgen05_wait_st(const Instr&, std::string&) { return wait_st; }

}  // namespace emu::ops
