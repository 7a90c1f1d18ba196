// SPDX-License-Identifier: MIT
// wgmma: the warpgroup's asynchronous matrix multiply (PTX ISA, Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions).
#include <algorithm>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/async_work.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/machine/warpgroup.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/element_types.h"
#include "tools/emulator/ptx/operands.h"

namespace emu::ops {
namespace {

using ptx::Instr;
using ptx::Operand;
using ptx::Step;
using ptx::Type;

enum Slot : size_t { d_slot, a_slot, b_slot, scale_slot, sign_a, sign_b, first_major };

Warpgroup& group_of(Warp& warp, uint32_t active, const char* opcode) {
  warp.require_whole(active, opcode);
  Cta& cta = warp.cta;
  const uint32_t index = warp.index / wgmma_warps;
  if ((index + 1) * wgmma_warps > cta.warps.size())
    throw Fault(FaultKind::illegal_instruction,
                format("%s in warp %u: a warpgroup is four warps, this block has %zu", opcode,
                       warp.index, cta.warps.size()));
  if (cta.warpgroups.size() <= index) cta.warpgroups.resize(index + 1);
  return cta.warpgroups[index];
}

bool immediate(const Instr& in, size_t slot, int32_t value) {
  return slot < in.ops.size() && int32_t(in.ops[slot].imm) == value;
}

WgmmaCommand command_of(Warp& warp, const Instr& in) {
  WgmmaCommand c;
  c.d_type = in.type() == Type::f16   ? AccumulatorType::f16
             : in.type() == Type::f32 ? AccumulatorType::f32
                                      : AccumulatorType::s32;
  c.a_type = element_type(in.type(1));
  c.b_type = element_type(in.type(2));
  c.negate_a = immediate(in, sign_a, -1);
  c.negate_b = immediate(in, sign_b, -1);
  c.saturate = in.has(ptx::Mod::satfinite);
  c.zero_raises = false;  // as on an H200: mma_dot.h
  c.n = ptx::wgmma_shape(in).n;
  c.a_in_registers = in.ops[a_slot].kind == Operand::Kind::vector;
  c.a_mn_major = !c.a_in_registers && immediate(in, first_major, 1);
  c.b_mn_major = immediate(in, c.a_in_registers ? first_major : first_major + 1, 1);
  if (!c.a_in_registers) c.a = warp.uniform(in.ops[a_slot], ~0u, in.opcode);
  c.b = warp.uniform(in.ops[b_slot], ~0u, in.opcode);
  Operand scale = in.ops[scale_slot];
  scale.negated = false;
  c.accumulate = bool(warp.uniform(scale, ~0u, in.opcode)) != in.ops[scale_slot].negated;
  return c;
}

void note_start(Warp& warp, const Instr& in, const WgmmaCommand& c) {
  if (starts_inside_pattern(c))
    report::formal(report::Rule::wgmma_start,
                   "an operand of wgmma.mma_async starts inside the swizzle pattern, its base "
                   "offset is 0",
                   warp, in, ~0u);
}

std::shared_ptr<WgmmaOperation> begin(Warp& warp, const Instr& in, const WgmmaCommand& c) {
  auto op = std::make_shared<WgmmaOperation>();
  op->in = &in;
  op->command = c;
  op->a.resize(c.a_in_registers ? wgmma_warps * a_registers * 32 : 0);
  op->operands = &AsyncWork(warp, Work::wgmma, every_lane).reads(warp.cta, check_wgmma(c));
  note_start(warp, in, c);
  ++warp.cta.counters.mmas;
  warp.cta.counters.macs += uint64_t(wgmma_rows) * c.n * ptx::wgmma_shape(in).k;
  return op;
}

// All four warps execute the same instruction with the same operands.
void require_same(const Warp& warp, const Instr& in, const WgmmaCommand& c,
                  const WgmmaOperation& op) {
  if (op.in != &in)
    throw Fault(FaultKind::illegal_instruction,
                format("warp %u issues this wgmma.mma_async where other warps of its warpgroup "
                       "issued the one of PTX line %u: the four execute the same",
                       warp.index, op.in->pos.line));
  if (!(c == op.command))
    throw Fault(FaultKind::illegal_instruction,
                format("wgmma.mma_async: warp %u has descriptors 0x%llx, 0x%llx and scale-d %d, "
                       "another warp of its warpgroup had 0x%llx, 0x%llx and %d",
                       warp.index, (unsigned long long)c.a, (unsigned long long)c.b, c.accumulate,
                       (unsigned long long)op.command.a, (unsigned long long)op.command.b,
                       op.command.accumulate));
}

// ptxas sees the accesses and serialises the operations ("wgmma.mma_async instructions are
// serialized due to ..", C7510 to C7520): hardware never runs what the missing fence would allow.
void require_fenced(const Warp& warp, const Instr& in, bool a_in_registers) {
  const Operand* touched = nullptr;
  const auto look = [&](const Operand& fragment) {
    for (const Operand& r : fragment.elements)
      if (warp.needs_wgmma_fence(r) && !touched) touched = &r;
  };
  if (a_in_registers) look(in.ops[a_slot]);
  look(in.ops[d_slot]);
  if (touched)
    report::formal(report::Rule::wgmma_fence,
                   format("wgmma.mma_async uses register %s, which another instruction accessed "
                          "since the last wgmma.fence",
                          warp.name_of(*touched)),
                   warp, in, ~0u);
}

// Register r of A has no value in those lanes.
void note_missing(const Warp& warp, const Operand& reg, uint32_t r, uint32_t none,
                  MissingRows& rows) {
  const std::string why = warp.none_in(reg, none);
  for_lanes(none, [&](uint32_t lane) { rows.add(fragment_row(member_of(warp), r, lane), why); });
}

// The registers belong to the operation until the warp waits for it.
void take_registers(Warp& warp, const Instr& in, WgmmaOperation& op) {
  const WgmmaCommand& c = op.command;
  require_fenced(warp, in, c.a_in_registers);
  ++warp.wgmma_in_flight;
  if (c.a_in_registers) {
    const auto& registers = in.ops[a_slot].elements;
    for (uint32_t r = 0; r < a_registers; ++r) {
      if (const uint32_t none = warp.begin_wgmma_fragment(registers[r]))
        note_missing(warp, registers[r], r, none, op.missing.a);
      Warp::Row scratch;
      const uint64_t* values = warp.wgmma_values(registers[r], scratch);
      for (uint32_t l = 0; l < 32; ++l)
        op.a[(member_of(warp) * a_registers + r) * 32 + l] = uint32_t(values[l]);
    }
  }
  const uint32_t shape = c.n << 2 | uint32_t(c.d_type);
  for (const Operand& r : in.ops[d_slot].elements)
    warp.begin_wgmma_accumulator(r, shape, c.accumulate);
}

// Sums of rows and columns without a value have none. If the wgmma does not add to its accumulator,
// all others have one.
void lose(Cta& cta, uint32_t first_warp, const WgmmaOperation& op) {
  const auto& registers = op.in->ops[d_slot].elements;
  const std::vector<uint32_t> lost = op.missing.any()
                                         ? lost_lanes(op.command, op.missing)
                                         : std::vector<uint32_t>(wgmma_warps * registers.size());
  const std::string& why = op.missing.a.any() ? op.missing.a.why : op.missing.b.why;
  const std::string text = format("%s (PTX line %u)", why.c_str(), op.in->pos.line);
  for (uint32_t w = 0; w < wgmma_warps; ++w)
    for (size_t r = 0; r < registers.size(); ++r)
      cta.warps[first_warp + w]->lose_wgmma(registers[r], op.command.accumulate,
                                            lost[w * registers.size() + r], text);
}

// Accumulators stay in the warps' registers all the time.
void run(Cta& cta, uint32_t first_warp, WgmmaOperation& op) {
  const auto& registers = op.in->ops[d_slot].elements;
  Fragments d(wgmma_warps * registers.size() * 32);
  const auto each = [&](auto f) {
    for (uint32_t w = 0; w < wgmma_warps; ++w)
      for (size_t r = 0; r < registers.size(); ++r)
        f(cta.warps[first_warp + w]->wgmma_row(registers[r]), &d[(w * registers.size() + r) * 32]);
  };
  if (op.command.accumulate)
    each([](const uint64_t* row, uint32_t* to) { std::copy_n(row, 32, to); });
  run_wgmma(op.command, *op.operands, op.a, d, op.missing);
  each([](uint64_t* row, const uint32_t* from) { std::copy_n(from, 32, row); });
  if (op.missing.any() || !op.command.accumulate) lose(cta, first_warp, op);
}

void start(Warp& warp, const Instr& in, Warpgroup& group,
           const std::shared_ptr<WgmmaOperation>& op) {
  Cta* cta = &warp.cta;
  if (!group.chain) group.chain = cta->cluster.async.new_chain();
  const uint32_t first_warp = warp.index / wgmma_warps * wgmma_warps;
  glue::post(warp, group.chain, in, [cta, first_warp, op] {
    run(*cta, first_warp, *op);
    op->done = true;
  });
}

Step mma_async(Warp& warp, const Instr& in, uint32_t active) {
  Warpgroup& group = group_of(warp, active, in.opcode);
  Warpgroup::Member& me = group.members[member_of(warp)];
  const WgmmaCommand c = command_of(warp, in);
  if (me.issued == group.first + group.operations.size())
    group.operations.push_back(begin(warp, in, c));
  const std::shared_ptr<WgmmaOperation> op = group.operations[size_t(me.issued - group.first)];
  require_same(warp, in, c, *op);
  take_registers(warp, in, *op);
  ++me.issued;
  op->issued |= 1u << member_of(warp);
  if (op->issued == (1u << wgmma_warps) - 1) start(warp, in, group, op);
  return Step::next;
}

Step fence(Warp& warp, const Instr& in, uint32_t active) {
  group_of(warp, active, in.opcode);
  warp.wgmma_fence();
  return Step::next;
}

Step commit_group(Warp& warp, const Instr& in, uint32_t active) {
  Warpgroup::Member& me = group_of(warp, active, in.opcode).members[member_of(warp)];
  me.groups.push_back(me.issued);
  return Step::next;
}

// Blocks until all but the latest n groups of this warp are done.
Step wait_group(Warp& warp, const Instr& in, uint32_t active) {
  Warpgroup& group = group_of(warp, active, in.opcode);
  Warpgroup::Member& me = group.members[member_of(warp)];
  const uint64_t pending = uint64_t(in.ops[0].imm);
  if (me.groups.size() <= pending) return Step::next;
  const size_t over = me.groups.size() - size_t(pending);
  const uint64_t end = me.groups[over - 1];
  if (!release_wgmma(warp, group, end)) return Step::blocked;
  warp.cta.cluster.observers.tell(event::WgmmasAwaited{uint32_t(end)});
  me.groups.erase(me.groups.begin(), me.groups.begin() + long(over));
  group.forget();
  return Step::next;
}

}  // namespace

ptx::Exec bind_wgmma_fence(const Instr&, std::string&) { return fence; }
ptx::Exec bind_wgmma_commit_group(const Instr&, std::string&) { return commit_group; }
ptx::Exec bind_wgmma_wait_group(const Instr&, std::string&) { return wait_group; }
ptx::Exec bind_wgmma_mma_async(const Instr&, std::string&) { return mma_async; }

}  // namespace emu::ops
