// SPDX-License-Identifier: MIT
// tcgen05.cp: shared memory to tensor memory, every shape without decompression. See tensor_core.h.
//
// A word that nobody wrote arrives as a cell without a value, which is a fault for whoever uses it:
// kernels known to be right copy whole scale tiles of which one 32-row group is filled.
#include <cstring>

#include "tools/emulator/hardware/smem_descriptor.h"
#include "tools/emulator/hardware/tensor_core.h"

namespace emu {
namespace {

// `rows` source rows of `chunks` x 16 bytes each.
struct Shape {
  const char* name;
  uint32_t rows, chunks;
};

constexpr Shape shapes[] = {
    {"tcgen05.cp.128x256b", 128, 2},
    {"tcgen05.cp.128x128b", 128, 1},
    {"tcgen05.cp.4x256b", 4, 2},
    {"tcgen05.cp.64x128b.warpx2::02_13", 64, 1},
    {"tcgen05.cp.64x128b.warpx2::01_23", 64, 1},
    {"tcgen05.cp.32x128b.warpx4", 32, 1},
};

// The lane of copy `i` of source row r, or no lane: PTX ISA tcgen05.cp multicast; .4x256b puts one
// row into each lane band (CUTLASS copy traits).
constexpr uint32_t no_lane = ~0u;
uint32_t lane_of(CopyShape shape, uint32_t r, uint32_t i, uint32_t base) {
  switch (shape) {
    case CopyShape::r128x256b:
    case CopyShape::r128x128b: return i == 0 ? r : no_lane;
    case CopyShape::r4x256b: return i == 0 ? base + 32 * r : no_lane;
    case CopyShape::r64x128b_02_13: return i < 2 ? r + 64 * i : no_lane;
    case CopyShape::r64x128b_01_23: return i < 2 ? r % 32 + 64 * (r / 32) + 32 * i : no_lane;
    case CopyShape::r32x128b: return r + 32 * i;
  }
  return no_lane;
}

SmemDescriptor check(CopyShape shape, uint32_t address, uint64_t descriptor,
                     const TensorMemory& tensor) {
  const Shape& s = shapes[size_t(shape)];
  const uint32_t lane = TensorMemory::lane_of(address);
  if (shape == CopyShape::r4x256b ? lane >= 32 : lane != 0)
    throw Fault(FaultKind::illegal_instruction,
                format("%s to tensor memory address 0x%08x: its lane must be %s", s.name, address,
                       shape == CopyShape::r4x256b ? "below 32" : "0"));
  tensor.require(TensorMemory::column_of(address), s.chunks * 4, s.name);
  return decode_smem_descriptor(descriptor, s.rows, s.chunks, s.name);
}

// The words of a chunk that hold a value, a bit each.
uint32_t words_with_value(const SharedMemory& shared, uint32_t address, const char* who) {
  uint32_t mask = 0;
  for (uint32_t w = 0; w < 4; ++w) mask |= uint32_t(shared.has_value(address + 4 * w, 4, who)) << w;
  return mask;
}

void copy(CopyShape shape, uint32_t address, uint64_t descriptor, const SharedMemory& shared,
          TensorMemory& tensor) {
  const SmemDescriptor d = check(shape, address, descriptor, tensor);
  const Shape& s = shapes[size_t(shape)];
  for (uint32_t r = 0; r < s.rows; ++r)
    for (uint32_t c = 0; c < s.chunks; ++c) {
      const uint32_t at = d.chunk(r, c);
      const uint8_t* words = shared.view_any(at, 16, s.name);
      const uint32_t with_value = words_with_value(shared, at, s.name);
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t lane = lane_of(shape, r, i, TensorMemory::lane_of(address));
        if (lane == no_lane) break;
        const uint32_t column = TensorMemory::column_of(address) + 4 * c;
        std::memcpy(tensor.write_row(lane, column, 4, s.name), words, 16);
        for (uint32_t w = 0; w < 4; ++w)
          if (!(with_value >> w & 1)) tensor.forget(lane, column + w);
      }
    }
}

}  // namespace

std::vector<Footprint> check_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor,
                                         const Memories& ctas) {
  std::vector<Footprint> all;
  each_cta(ctas, [&](uint32_t i) {
    const SmemDescriptor d = check(shape, address, descriptor, ctas[i].tensor);
    const Shape& s = shapes[size_t(shape)];
    Footprint f{{}, TensorMemory::column_of(address), s.chunks * 4};
    for (uint32_t at = 0; at < s.rows * s.chunks; ++at)
      f.chunks.push_back(d.chunk(at / s.chunks, at % s.chunks));
    all.push_back(std::move(f));
  });
  return all;
}

void run_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor, const Memories& ctas) {
  each_cta(ctas,
           [&](uint32_t i) { copy(shape, address, descriptor, ctas[i].shared, ctas[i].tensor); });
}

}  // namespace emu
