// SPDX-License-Identifier: MIT
// A warp's registers and special registers.
#include <algorithm>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/report.h"

namespace emu {

using ptx::Operand;
using ptx::Space;
using ptx::Special;

Warp::Warp(Cta& owner, uint32_t i, uint32_t existing)
    : cta(owner),
      index(i),
      lanes(existing),
      flow(existing),
      local(owner.cluster.launch.function->local_bytes),
      calls(owner.cluster.launch.function->local_bytes),
      values_(std::make_unique_for_overwrite<uint64_t[]>(
          size_t(owner.cluster.launch.function->register_slots) * 32)),
      defined_(owner.cluster.launch.function->register_slots),
      pending_(owner.cluster.launch.function->register_slots) {}

const char* Warp::name_of(const Operand& op) const {
  const auto& names = cta.cluster.launch.function->register_names;
  return named(op) < names.size() ? names[named(op)].c_str() : "?";
}

std::string Warp::none_in(const Operand& op, uint32_t lanes_without) const {
  const auto reason = why_.find(named(op));
  return format("register %s is read by lanes 0x%08x, in which nobody has written it", name_of(op),
                lanes_without) +
         (reason == why_.end() ? "" : ": " + reason->second.text);
}

void Warp::no_value(const Operand& op, uint32_t lanes_without) const {
  throw Fault(FaultKind::uninitialised, none_in(op, lanes_without));
}

// Addresses of shared variables carry this CTA's rank; so does every address made from them.
uint64_t Warp::symbol(const Operand& op) const {
  if (op.space == Space::shared_cta || op.space == Space::shared_cluster)
    return cta.shared_address(uint32_t(op.imm));
  if (op.variable == ptx::no_variable) return uint64_t(op.imm);
  return cta.cluster.launch.module->variables[op.variable].address + uint64_t(op.imm);
}

uint64_t Warp::get(const Operand& op, uint32_t lane, uint32_t part) const {
  switch (op.kind) {
    case Operand::Kind::reg:
      if (!(defined_[op.reg + part] >> lane & 1)) no_value(op, 1u << lane);
      touch(op.reg + part);
      return values_[size_t(op.reg + part) * 32 + lane];
    case Operand::Kind::imm: return part ? (op.imm < 0 ? ~0ull : 0) : uint64_t(op.imm);
    case Operand::Kind::special: return special(op.special, lane);
    case Operand::Kind::symbol: return symbol(op) + frame_base(op, lane);
    default: throw Fault(FaultKind::illegal_instruction, "an operand that has no single value");
  }
}

void Warp::set(const Operand& op, uint32_t lane, uint64_t bits, uint32_t part) {
  if (op.kind == Operand::Kind::sink) return;
  uint32_t slot = op.reg + part;
  touch(slot);
  values_[size_t(slot) * 32 + lane] = bits & width_mask(op.declared);
  defined_[slot] |= 1u << lane;
  pending_[slot] &= ~(1u << lane);
}

namespace {

bool differs_by_lane(Special s) {
  return s == Special::laneid || (s >= Special::tid_x && s <= Special::tid_z) ||
         (s >= Special::lanemask_eq && s <= Special::lanemask_gt);
}

}  // namespace

const uint64_t* Warp::source(const Operand& op, uint32_t active, Row& scratch,
                             uint32_t part) const {
  if (op.kind == Operand::Kind::reg) {
    uint32_t slot = op.reg + part;
    if (uint32_t missing = active & ~defined_[slot]) no_value(op, missing);
    touch(slot);
    return &values_[size_t(slot) * 32];
  }
  if (op.kind == Operand::Kind::special && differs_by_lane(op.special))
    for_lanes(active, [&](uint32_t lane) { scratch[lane] = special(op.special, lane); });
  else if (op.kind == Operand::Kind::symbol && op.reg != ptx::no_register)
    for_lanes(active, [&](uint32_t lane) { scratch[lane] = get(op, lane); });
  else
    std::fill_n(scratch, 32, get(op, 0, part));
  return scratch;
}

uint64_t* Warp::destination(const Operand& op, uint32_t active, uint32_t part) {
  if (op.kind == Operand::Kind::sink) return sink_;
  uint32_t slot = op.reg + part;
  touch(slot);
  defined_[slot] |= active;
  pending_[slot] &= ~active;
  return &values_[size_t(slot) * 32];
}

const uint64_t* Warp::operand(const Operand& op, uint32_t active, Row& scratch, Unknown& unknown,
                              uint32_t part) const {
  if (op.kind != Operand::Kind::reg) return source(op, active, scratch, part);
  const uint32_t slot = op.reg + part;
  if (const uint32_t missing = active & ~defined_[slot]) unknown = {unknown.lanes | missing, &op};
  return source(op, active & defined_[slot], scratch, part);
}

uint32_t Warp::truth(const Operand& op, uint32_t active, Unknown& unknown) const {
  if (const uint32_t missing = active & ~defined(op, active))
    unknown = {unknown.lanes | missing, &op};
  return pred_mask(op, defined(op, active));
}

// Where a missing value came from first: a result of it hands that on.
std::string Warp::origin(const Unknown& unknown) const {
  if (!unknown.of) return carry_why.text;
  const auto reason = why_.find(named(*unknown.of));
  if (reason == why_.end())
    return format("PTX line %u read register %s, which was never written",
                  cta.cluster.launch.function->code[cta.cluster.actor.pc].pos.line,
                  name_of(*unknown.of));
  return reason->second.text;
}

std::string Warp::computed_from(const Unknown& unknown) const {
  const std::string how = "it was computed from an undefined value: ";
  const std::string why = origin(unknown);
  return why.compare(0, how.size(), how) == 0 ? why : how + why;
}

uint64_t* Warp::result(const Operand& op, uint32_t active, const Unknown& unknown, uint32_t part) {
  if (unknown.lanes) {
    std::string why = computed_from(unknown);
    uint64_t* d = destination(op, active, part);
    undefine(op, unknown.lanes, {std::move(why)});
    return d;
  }
  return destination(op, active, part);
}

uint32_t Warp::pred_mask(const Operand& op, uint32_t active) const {
  Row scratch;
  const uint64_t* p = source(op, active, scratch);
  uint32_t mask = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) mask |= uint32_t(p[lane] & 1) << lane;
  return (op.negated ? ~mask : mask) & active;
}

uint32_t Warp::guarded(const ptx::Instr& in, uint32_t mask) const {
  Operand op;
  op.kind = Operand::Kind::reg;
  op.reg = in.guard;
  op.negated = in.guard_negated;
  return pred_mask(op, mask);
}

uint32_t Warp::defined(const Operand& op, uint32_t active) const {
  if (op.kind != Operand::Kind::reg) return active;
  return defined_[op.reg] & active;
}

void Warp::undefine(const Operand& op, uint32_t lanes_without, Reason why) {
  if (op.kind != Operand::Kind::reg || !lanes_without) return;
  defined_[op.reg] &= ~lanes_without;
  if (why.text.empty())
    why_.erase(named(op));
  else
    why_[named(op)] = std::move(why);
}

Reason Warp::why(const Operand& op) const {
  const auto reason = why_.find(named(op));
  return op.kind == Operand::Kind::reg && reason != why_.end() ? reason->second : Reason{};
}

void Warp::set_pending(const Operand& op, uint32_t owned) {
  if (op.kind != Operand::Kind::reg) return;
  defined_[op.reg] &= ~owned;
  pending_[op.reg] |= owned;
}

uint64_t Warp::address(const Operand& op, uint32_t lane) const {
  uint64_t base = 0;
  if (op.reg != ptx::no_register) {
    if (!(defined_[op.reg] >> lane & 1)) no_value(op, 1u << lane);
    base = values_[size_t(op.reg) * 32 + lane];
  } else if (op.base_is_symbol) {
    return symbol(op);
  }
  return base + uint64_t(op.imm);
}

bool Warp::alike(const Operand& op, uint32_t active) const {
  if (op.kind == Operand::Kind::special) return false;
  const bool has_row = op.kind == Operand::Kind::reg || op.kind == Operand::Kind::address ||
                       op.kind == Operand::Kind::symbol;
  if (!has_row || op.reg == ptx::no_register) return true;
  if (active & ~defined_[op.reg]) return false;
  const uint64_t* const row = &values_[size_t(op.reg) * 32];
  const uint64_t first = row[std::countr_zero(active)];
  uint64_t differ = 0;
  for_lanes(active, [&](uint32_t lane) { differ |= row[lane] ^ first; });
  return !differ;
}

uint64_t Warp::uniform(const Operand& op, uint32_t active, const char* who) const {
  uint32_t first = uint32_t(std::countr_zero(active));
  auto value = [&](uint32_t lane) {
    return op.kind == Operand::Kind::address ? address(op, lane) : get(op, lane);
  };
  uint64_t v = value(first);
  for (uint32_t l = active; l; l &= l - 1) {
    uint32_t lane = uint32_t(std::countr_zero(l));
    if (value(lane) != v)
      throw Fault(FaultKind::illegal_instruction,
                  format("%s needs one value in all lanes; lane %u has 0x%llx, lane %u has 0x%llx",
                         who, first, (unsigned long long)v, lane, (unsigned long long)value(lane)));
  }
  return v;
}

void Warp::exit(uint32_t active) {
  exited |= active;
  flow.exit(active);
  if (!live()) --cta.live_warps;
  ++cta.cluster.progress;
  cta.barriers.threads_exited();
  cta.cluster.barrier.threads_exited();
}

uint8_t* Warp::global(uint64_t address, uint32_t bytes, uint32_t align, const char* who) {
  const GlobalMemory& memory = cta.cluster.launch.memory.get(Teller{});
  const uint64_t frees = memory.frees();
  if (address >= cached_begin_ && address < cached_end_ && bytes <= cached_end_ - address &&
      address % align == 0 && frees == cached_frees_)
    return cached_data_ + (address - cached_begin_);
  uint8_t* data = memory.at(address, bytes, align, who);
  if (const Allocation* a = memory.find(address)) {
    cached_frees_ = frees;
    cached_begin_ = a->address;
    cached_end_ = a->address + a->bytes;
    cached_data_ = a->data.get();
  }
  return data;
}

namespace {

uint32_t axis(const Dim3& d, int i) { return i == 0 ? d.x : i == 1 ? d.y : d.z; }

// Emulated time is the CTA's instruction count plus the time that settings give to its copies and
// loads, so that a run depends on its seed only.
uint64_t clocks(const Cta& cta) {
  constexpr uint64_t column_bytes = 16 * 32 * 4;  // 16 columns, a warp's lanes
  const Settings& s = settings();
  const Counters& c = cta.counters;
  return c.instructions * s.instruction_clocks +
         (s.copy_rate ? (c.tma_bytes + c.bulk_bytes) / s.copy_rate : 0) +
         c.scale_copies * s.cp_clocks + c.tensor_load_bytes / column_bytes * s.drain_clocks +
         cta.maps.size() * s.map_clocks;
}

}  // namespace

uint32_t sm_of(const Cta& cta) {
  const Launch& launch = cta.cluster.launch;
  const uint64_t row = cta.id.y + uint64_t(launch.grid.y) * cta.id.z;
  return uint32_t((cta.id.x + launch.grid.x * row) % launch.sm_count);
}

uint64_t Warp::special(Special s, uint32_t lane) const {
  const Cluster& cluster = cta.cluster;
  const Launch& launch = cluster.launch;
  auto is = [&](Special first) { return s >= first && uint8_t(s) < uint8_t(first) + 3; };
  auto pick = [&](Special first, const Dim3& d) { return axis(d, int(s) - int(first)); };
  if (is(Special::tid_x)) {
    uint32_t t = thread(lane), x = launch.block.x, y = launch.block.y;
    return pick(Special::tid_x, {t % x, t / x % y, t / x / y});
  }
  if (is(Special::ntid_x)) return pick(Special::ntid_x, launch.block);
  if (is(Special::ctaid_x)) return pick(Special::ctaid_x, cta.id);
  if (is(Special::nctaid_x)) return pick(Special::nctaid_x, launch.grid);
  if (is(Special::clusterid_x)) return pick(Special::clusterid_x, cluster.id);
  if (is(Special::nclusterid_x))
    return pick(Special::nclusterid_x,
                {launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y,
                 launch.grid.z / launch.cluster.z});
  if (is(Special::cluster_ctaid_x))
    return pick(Special::cluster_ctaid_x, cluster.cta_in_cluster(cta.rank));
  if (is(Special::cluster_nctaid_x)) return pick(Special::cluster_nctaid_x, cluster.size);
  uint32_t shared = Cluster::shared_bytes(launch), reserved = SharedMemory::window_start;
  switch (s) {
    case Special::cluster_ctarank: return cta.rank;
    case Special::cluster_nctarank: return cluster.ctas.size();
    case Special::laneid: return lane;
    case Special::warpid: return index;
    case Special::nwarpid: return 64;  // warp slots of an SM, not warps of the CTA (PTX ISA 10.4)
    case Special::smid: return sm_of(cta);
    case Special::nsmid: return launch.sm_count;
    case Special::gridid: return launch.grid_id;
    case Special::zero: return 0;
    case Special::envreg: return 0;  // the driver's own; of a cooperative grid two are known
    case Special::envreg1: return launch.grid_workspace >> 32;
    case Special::envreg2: return uint32_t(launch.grid_workspace);
    case Special::lanemask_eq: return 1u << lane;
    case Special::lanemask_lt: return (1u << lane) - 1;
    case Special::lanemask_le: return (2u << lane) - 1;
    case Special::lanemask_gt: return ~((2u << lane) - 1);
    case Special::lanemask_ge: return ~((1u << lane) - 1);
    case Special::clock:
    case Special::globaltimer_lo: return uint32_t(clocks(cta));
    case Special::globaltimer_hi: return clocks(cta) >> 32;
    case Special::clock64:
    case Special::globaltimer: return clocks(cta);
    case Special::dynamic_smem_size: return launch.dynamic_shared_bytes;
    case Special::total_smem_size: return shared;
    case Special::aggr_smem_size: return shared + reserved;
    default:
      throw Fault(FaultKind::illegal_instruction, "a special register that the machine lacks");
  }
}

}  // namespace emu
