// SPDX-License-Identifier: MIT
// tcgen05.cp: shared memory to tensor memory, every shape. See tensor_core.h.
//
// A word that was never written arrives as a cell without a value, which is a fault for the
// instruction that uses it: kernels known to be right copy whole scale tiles of which one 32-row
// group is filled.
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

// What a chunk of shared memory brings: four words, and a bit for each that has a value.
struct Chunk {
  uint8_t bytes[16];
  uint32_t with_value = 0;
};

// Element i is bits 6 i and up of the first 12 bytes; two zeros go above it. The manual draws that
// (9.7.16.9.1.2) and says that ldmatrix has the same formats; CUTLASS says that ldmatrix leaves
// 6-bit elements where mma.sync takes them, in the lowest bits.
void expand(const uint8_t* packed, uint8_t* bytes) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t at = 6 * i / 8, shift = 6 * i % 8;
    const uint32_t next = shift > 2 ? packed[at + 1] : 0;
    bytes[i] = uint8_t((packed[at] | next << 8) >> shift & 0x3F);
  }
}

// A word of the result comes from 4 bytes, or from 3 of 6-bit elements, whose padding is never
// read.
Chunk read_chunk(const SharedMemory& shared, uint32_t at, CopyFormat format, const char* who) {
  const uint32_t per_word = format == CopyFormat::b6x16_p32 ? 3 : 4;
  const uint8_t* from = shared.view_any(at, 4 * per_word, who);
  Chunk chunk;
  if (format == CopyFormat::b6x16_p32)
    expand(from, chunk.bytes);
  else
    std::memcpy(chunk.bytes, from, sizeof chunk.bytes);
  for (uint32_t w = 0; w < 4; ++w)
    chunk.with_value |= uint32_t(shared.has_value(at + per_word * w, per_word, who)) << w;
  return chunk;
}

void copy(CopyShape shape, uint32_t address, uint64_t descriptor, CopyFormat format,
          const SharedMemory& shared, TensorMemory& tensor) {
  const SmemDescriptor d = check(shape, address, descriptor, tensor);
  const Shape& s = shapes[size_t(shape)];
  for (uint32_t r = 0; r < s.rows; ++r)
    for (uint32_t c = 0; c < s.chunks; ++c) {
      const Chunk chunk = read_chunk(shared, d.chunk(r, c), format, s.name);
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t lane = lane_of(shape, r, i, TensorMemory::lane_of(address));
        if (lane == no_lane) break;
        const uint32_t column = TensorMemory::column_of(address) + 4 * c;
        std::memcpy(tensor.write_row(lane, column, 4, s.name), chunk.bytes, 16);
        for (uint32_t w = 0; w < 4; ++w)
          if (!(chunk.with_value >> w & 1)) tensor.forget(lane, column + w);
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

void run_tensor_copy(CopyShape shape, uint32_t address, uint64_t descriptor, const Memories& ctas,
                     CopyFormat format) {
  each_cta(ctas, [&](uint32_t i) {
    copy(shape, address, descriptor, format, ctas[i].shared, ctas[i].tensor);
  });
}

}  // namespace emu
