// SPDX-License-Identifier: MIT
// cp.async.bulk.tensor: load, store, prefetch; cp.reduce.async.bulk.tensor.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/hardware/tma.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/bulk.h"
#include "tools/emulator/op/reduction.h"

namespace emu::ops {
namespace {

using ptx::Instr;
using ptx::Mod;
using ptx::Space;
using ptx::Step;

uint32_t rank_of(const Instr& in) {
  uint32_t rank = 1;
  for (Mod m : {Mod::dim_1, Mod::dim_2, Mod::dim_3, Mod::dim_4, Mod::dim_5}) {
    if (in.has(m)) return rank;
    ++rank;
  }
  return 0;
}

// The hardware reads maps from parameters, constants or global memory, at a generic address.
const void* map_bytes(Warp& warp, const ptx::Operand& op, uint32_t lane, const char* who) {
  const Launch& launch = warp.cta.cluster.launch;
  uint64_t address = warp.address(op, lane);
  if (op.base_is_symbol && op.space == Space::param)
    address = address::to_generic(Space::param, address);
  if (address % 64)
    throw Fault(FaultKind::misaligned_address,
                format("%s: the tensor map at 0x%llx is not 64-byte aligned", who,
                       (unsigned long long)address));
  switch (address::space_of(address)) {
    case Space::global: return AsyncWork::tensor_map(warp, lane, address, who);
    case Space::param: {
      const uint64_t offset = address::from_generic(Space::param, address);
      if (offset + sizeof(EncodedMap) <= launch.params.size()) return &launch.params[offset];
      throw Fault(FaultKind::illegal_address,
                  format("%s: a tensor map at parameter offset %llu of %zu bytes", who,
                         (unsigned long long)offset, launch.params.size()));
    }
    default:
      throw Fault(
          FaultKind::illegal_address,
          format("%s: the tensor map at 0x%llx is in shared or local memory; it has to be a "
                 "parameter, a constant or in global memory",
                 who, (unsigned long long)address));
  }
}

// The im2col offsets are the only operand in braces.
const ptx::Operand& offset_vector(const Instr& in) {
  return *std::find_if(in.ops.begin(), in.ops.end(), [](const ptx::Operand& op) {
    return op.kind == ptx::Operand::Kind::vector;
  });
}

struct Box {
  TensorMap map;
  TmaCoordinates at;
};

Box box(Warp& warp, const Instr& in, const ptx::Operand& op, uint32_t lane) {
  require_policy(warp, in, lane);
  Box b{decode_tensor_map(map_bytes(warp, op, lane, in.opcode), in.opcode), {}};
  for (size_t i = 0; i < op.elements.size() && i < TensorMap::max_rank; ++i)
    b.at.at[i] = int32_t(warp.get(op.elements[i], lane));
  if (in.has(Mod::tile_gather4) || in.has(Mod::tile_scatter4)) b.at.mode = TmaMode::rows4;
  if (in.has(Mod::im2col) || in.has(Mod::im2col_no_offs)) b.at.mode = TmaMode::im2col;
  if (!in.has(Mod::im2col)) return b;
  const auto& offsets = offset_vector(in).elements;
  for (size_t i = 0; i < offsets.size(); ++i) b.at.offset[i] = uint16_t(warp.get(offsets[i], lane));
  return b;
}

void note_map(Cta& cta, uint64_t address) {
  if (std::find(cta.maps.begin(), cta.maps.end(), address) == cta.maps.end())
    cta.maps.push_back(address);
}

Step load(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    const Box b = box(warp, in, in.ops[1], lane);
    note_map(warp.cta, warp.address(in.ops[1], lane));
    const size_t mask = in.has(Mod::im2col) ? 4 : 3;
    const bool multicast = in.has(Mod::multicast_cluster);
    ++warp.cta.counters.tma_loads;
    for (const Delivery& d :
         deliveries(warp, in, lane, in.ops[0], in.ops[2], multicast ? &in.ops[mask] : nullptr)) {
      check_tma_load(b.map, rank_of(in), b.at, d.data.address);
      const uint32_t bytes = tma_bytes(b.map, b.at);
      warp.cta.counters.tma_bytes += bytes;
      if (!warp.waited_for_grids) warp.cta.counters.early_bytes += bytes;
      const AsyncWork work(warp, Work::copy, lane);
      const GlobalMemory& memory = work.reads(tma_rows(b.map, b.at, TmaUse::load));
      const auto write = [=, &memory](SharedMemory& shared) {
        tma_load(b.map, b.at, d.data.address, shared, memory);
      };
      deliver(warp, in, work, d, bytes, write, Use::write, tma_shared_bytes(b.map, b.at));
    }
  });
  return Step::next;
}

Step store(Warp& warp, const Instr& in, uint32_t active) {
  for (const auto& [lane, lanes] : issuers(warp, in, active)) {
    const Box b = box(warp, in, in.ops[0], lane);
    const glue::Target from = glue::target(warp, in.ops[1], lane, glue::Where::own, in.opcode);
    check_tma_store(b.map, rank_of(in), b.at, from.address);
    ++warp.cta.counters.tma_stores;
    warp.cta.counters.tma_store_bytes += tma_bytes(b.map, b.at);
    const Shipment shipment{from.address, tma_shared_bytes(b.map, b.at),
                            tma_rows(b.map, b.at, TmaUse::store)};
    send(warp, in, lanes, shipment, [=](const SharedMemory& shared, const GlobalMemory& memory) {
      tma_store(b.map, b.at, from.address, shared, memory);
    });
  }
  return Step::next;
}

// The type of the words that cp.reduce updates in a tensor, by CUtensorMapDataType. Type::none:
// that data type has no reduction (PTX ISA 9.7.9.25.5.4).
ptx::Type word_of(const TensorMap& map) {
  using ptx::Type;
  constexpr Type words[] = {Type::none, Type::none, Type::u32, Type::s32, Type::u64,
                            Type::s64,  Type::f16,  Type::f32, Type::f64, Type::bf16};
  return map.type < std::size(words) ? words[map.type] : Type::none;
}

Update update_of(const Instr& in, const TensorMap& map) {
  ptx::Type word = word_of(map);
  const bool logic = in.has(Mod::and_) || in.has(Mod::or_) || in.has(Mod::xor_);
  const bool counts = in.has(Mod::inc) || in.has(Mod::dec);
  const bool extreme = in.has(Mod::min) || in.has(Mod::max);
  const bool wide_float = word == ptx::Type::f32 || word == ptx::Type::f64;
  const bool fits = word != ptx::Type::none && !(logic && is_float(word)) &&
                    !(counts && word != ptx::Type::u32) && !(extreme && wide_float);
  if (!fits)
    throw Fault(FaultKind::illegal_instruction,
                format("%s: no such reduction of a tensor of data type %u", in.opcode, map.type));
  return reduction_of(in, word, true);
}

Step reduce(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    const Box b = box(warp, in, in.ops[0], lane);
    const glue::Target from = glue::target(warp, in.ops[1], lane, glue::Where::own, in.opcode);
    check_tma_store(b.map, rank_of(in), b.at, from.address);
    const Update f = update_of(in, b.map);
    const uint32_t size = uint32_t(b.map.element_bits() / 8);
    const auto update = [=](uint8_t* to, const uint8_t* value) {
      uint64_t word = 0;
      std::memcpy(&word, value, size);
      update_global(to, size, f, word);
    };
    const Shipment shipment{from.address, tma_shared_bytes(b.map, b.at),
                            tma_rows(b.map, b.at, TmaUse::update), Use::atomic};
    send(warp, in, 1u << lane, shipment,
         [=](const SharedMemory& shared, const GlobalMemory& memory) {
           tma_update(b.map, b.at, from.address, shared, memory, update);
         });
  });
  return Step::next;
}

// A hint: the box is checked and nothing is fetched.
Step prefetch(Warp& warp, const Instr& in, uint32_t active) {
  glue::each_lane(active, [&](uint32_t lane) {
    const Box b = box(warp, in, in.ops[0], lane);
    check_tma_load(b.map, rank_of(in), b.at, 0);
  });
  return Step::next;
}

}  // namespace

namespace {

// The manual shows the places of the halo's pixels only in drawings (PTX ISA 5.5.5.3), so the modes
// that have a halo are refused.
bool knows_mode(const Instr& in, std::string& why) {
  if (!in.has(Mod::im2col_w) && !in.has(Mod::im2col_w_128)) return true;
  why = "the modes .im2col::w and .im2col::w::128 are not emulated";
  return false;
}

}  // namespace

ptx::Exec bind_cp_async_bulk_tensor(const Instr& in, std::string& why) {
  if (!knows_mode(in, why)) return nullptr;
  return in.has(Mod::bulk_group) ? store : load;
}
ptx::Exec bind_cp_reduce_async_bulk_tensor(const Instr&, std::string&) { return reduce; }
ptx::Exec bind_cp_async_bulk_prefetch_tensor(const Instr& in, std::string& why) {
  return knows_mode(in, why) ? prefetch : nullptr;
}

}  // namespace emu::ops
