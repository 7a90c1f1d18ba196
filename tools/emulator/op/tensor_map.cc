// SPDX-License-Identifier: MIT
// Editing tensor maps in a kernel: tensormap.replace and tensormap.cp_fenceproxy (PTX ISA 9.7.9.26,
// 9.7.13.7).
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint32_t words = sizeof(EncodedMap) / 8;

// The words of a map in memory; it is 64-byte aligned.
struct MapPlace {
  Place word[words];
};
MapPlace place(Warp& w, uint32_t lane, Space space, uint64_t address, const char* who) {
  if (address % 64)
    throw Fault(FaultKind::misaligned_address,
                format("%s: the tensor map at 0x%llx is not 64-byte aligned", who,
                       (unsigned long long)address));
  MapPlace p;
  for (uint32_t i = 0; i < words; ++i) p.word[i] = locate(w, lane, space, address + i * 8, 8, who);
  return p;
}

struct MapBytes {
  Bytes word[words];
};
// By the warp as one: lanes may edit one map alike.
MapBytes open(MapPlace p, const Instr& in, Use use) {
  MapBytes b;
  for (uint32_t i = 0; i < words; ++i) {
    p.word[i].lane = every_lane;
    b.word[i] = p.word[i].open(in, 8, use);
  }
  return b;
}

EncodedMap read_map(const MapBytes& b, const char* who) {
  EncodedMap map;
  for (uint32_t i = 0; i < words; ++i) map.words[i] = b.word[i].read(0, 8, who);
  return map;
}

void write_map(const MapBytes& b, const EncodedMap& map, const char* who) {
  for (uint32_t i = 0; i < words; ++i) b.word[i].write(0, 8, map.words[i], who);
}

struct Field {
  Mod mod;
  MapField field;
};
constexpr Field fields[] = {
    {Mod::global_address, MapField::global_address},
    {Mod::rank, MapField::rank},
    {Mod::box_dim, MapField::box_dim},
    {Mod::global_dim, MapField::global_dim},
    {Mod::global_stride, MapField::global_stride},
    {Mod::element_stride, MapField::element_stride},
    {Mod::elemtype, MapField::elemtype},
    {Mod::interleave_layout, MapField::interleave_layout},
    {Mod::swizzle_mode, MapField::swizzle_mode},
    {Mod::swizzle_atomicity, MapField::swizzle_atomicity},
    {Mod::fill_mode, MapField::fill_mode},
};

MapField field_of(const Instr& in) {
  for (const Field& f : fields)
    if (in.has(f.mod)) return f.field;
  return MapField::rank;
}

Step replace(Warp& w, const Instr& in, uint32_t active) {
  const MapField field = field_of(in);
  const bool has_dimension = in.ops.size() == 3;
  for_lanes(active, [&](uint32_t lane) {
    const MapBytes p = open(place(w, lane, space_named(in), w.address(in.ops[0], lane), in.opcode),
                            in, Use::write);
    TensorMap map;
    if (!read_map(p, in.opcode).decode(&map))
      throw Fault(FaultKind::illegal_instruction,
                  "tensormap.replace: the 128 bytes are no tiled tensor map");
    replace_field(map, field, has_dimension ? uint32_t(w.get(in.ops[1], lane)) : 0,
                  w.get(in.ops.back(), lane));
    write_map(p, map, in.opcode);
  });
  return Step::next;
}

// The warp copies one map.
Step copy(Warp& w, const Instr& in, uint32_t active) {
  w.require_aligned(active, in.opcode);
  const uint64_t to = w.uniform(in.ops[0], active, in.opcode);
  const uint64_t from = w.uniform(in.ops[1], active, in.opcode);
  const uint32_t lane = uint32_t(std::countr_zero(active));
  const MapPlace source = place(w, lane, Space::shared_cta, from, in.opcode);
  const MapPlace target = place(w, lane, Space::global, to, in.opcode);
  const MapBytes map = open(source, in, Use::read), copied = open(target, in, Use::write);
  write_map(copied, read_map(map, in.opcode), in.opcode);
  return Step::next;
}

}  // namespace

Exec bind_tensormap_replace(const Instr&, std::string&) { return replace; }
Exec bind_tensormap_cp_fenceproxy(const Instr&, std::string&) { return copy; }

}  // namespace emu::ops
