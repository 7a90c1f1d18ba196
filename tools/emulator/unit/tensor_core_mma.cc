// SPDX-License-Identifier: MIT
// tcgen05.mma with block scaling: gathers the operands, checks the scales, computes. See
// tensor_core.h.
#include <cstring>
#include <vector>

#include "../fault.h"
#include "mma_block_scaled.h"
#include "smem_descriptor.h"
#include "tensor_core.h"

namespace emu {
namespace {

constexpr uint32_t row_bytes = 32, chunk_bytes = 16, chunks = row_bytes / chunk_bytes;
constexpr uint32_t band = 32;  // lanes of one quarter: scales are repeated in all four

uint32_t scale_columns(uint32_t rows) { return (rows + band - 1) / band; }

// CUTLASS keeps the scale id in bits 31:30 of the address as well; the descriptor decides.
void check_scale_address(const char* name, uint32_t address, uint32_t id, uint32_t rows,
                         const TensorMemory& tensor) {
  const uint32_t column = TensorMemory::column_of(address);
  if (const uint32_t tag = address >> 30; tag && tag != id)
    throw Fault(FaultKind::illegal_instruction,
                format("tcgen05.mma: %s address 0x%08x carries scale id %u in bits 31:30, the "
                       "instruction descriptor says %u",
                       name, address, tag, id));
  if (column % 2)
    throw Fault(
        FaultKind::misaligned_address,
        format("tcgen05.mma: %s address 0x%08x: column %u is odd, scales start at an even one",
               name, address, column));
  if (TensorMemory::lane_of(address))
    throw Fault(FaultKind::illegal_instruction,
                format("tcgen05.mma: %s address 0x%08x: scales start at lane 0", name, address));
  tensor.require(column, scale_columns(rows), name);
}

void check_disjoint(uint32_t d, uint32_t n, const char* name, uint32_t address, uint32_t rows) {
  const uint32_t first = TensorMemory::column_of(address), count = scale_columns(rows);
  if (d < first + count && first < d + n)
    throw Fault(FaultKind::tensor_memory,
                format("tcgen05.mma: D in columns [%u, %u) overlaps %s in [%u, %u)", d, d + n, name,
                       first, first + count));
}

MmaShape check_shape(const MmaCommand& c, const TensorMemory& tensor) {
  const MmaShape shape = decode_instruction_descriptor(c.instruction, c.kind, c.block, false);
  const uint32_t d = TensorMemory::column_of(c.d);
  if (TensorMemory::lane_of(c.d))
    throw Fault(
        FaultKind::illegal_instruction,
        format("tcgen05.mma: D address 0x%08x: an M = 128 accumulator starts at lane 0", c.d));
  tensor.require(d, shape.n, "tcgen05.mma D");
  check_scale_address("tcgen05.mma SFA", c.sfa, shape.sfa_id, shape.m, tensor);
  check_scale_address("tcgen05.mma SFB", c.sfb, shape.sfb_id, shape.n, tensor);
  check_disjoint(d, shape.n, "SFA", c.sfa, shape.m);
  check_disjoint(d, shape.n, "SFB", c.sfb, shape.n);
  return shape;
}

std::vector<uint8_t> gather(const SmemDescriptor& d, uint32_t rows, const SharedMemory& shared,
                            const char* who) {
  std::vector<uint8_t> packed(rows * row_bytes);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < chunks; ++c)
      std::memcpy(&packed[r * row_bytes + c * chunk_bytes],
                  shared.view(d.chunk(r, c), chunk_bytes, who), chunk_bytes);
  return packed;
}

// One 32-bit word of scales. Which band the hardware reads is not known for M = 128, so the four
// copies have to agree.
uint32_t scale_word(const TensorMemory& tensor, uint32_t row, uint32_t column, const char* who) {
  const uint32_t lane = row % band;
  const uint32_t word = tensor.read(lane, column + row / band, who);
  for (uint32_t copy = lane + band; copy < TensorMemory::lanes; copy += band) {
    const uint32_t other = tensor.read(copy, column + row / band, who);
    if (other != word)
      throw Fault(
          FaultKind::tensor_memory,
          format("%s: the scales of row %u differ between lane bands: column %u has 0x%08x in "
                 "lane %u and 0x%08x in lane %u",
                 who, row, column + row / band, word, lane, other, copy));
  }
  return word;
}

// Four codes per row, one per group of 16: block 32 has two, at byte `id`.
std::vector<uint8_t> gather_scales(const TensorMemory& tensor, uint32_t address, uint32_t rows,
                                   uint32_t block, uint32_t id, const char* who) {
  std::vector<uint8_t> codes(rows * 4);
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t word = scale_word(tensor, r, TensorMemory::column_of(address), who);
    for (uint32_t g = 0; g < 4; ++g)
      codes[r * 4 + g] = uint8_t(word >> 8 * (block == 16 ? g : id + g / 2));
  }
  return codes;
}

}  // namespace

Footprint check_mma(const MmaCommand& c, const TensorMemory& tensor) {
  const MmaShape shape = check_shape(c, tensor);
  constexpr uint64_t k = row_bytes * 2;
  Footprint f{{}, TensorMemory::column_of(c.d), shape.n, shape.m * shape.n * k};
  const auto add = [&](const SmemDescriptor& d, uint32_t rows) {
    for (uint32_t i = 0; i < rows * chunks; ++i)
      f.chunks.push_back(d.chunk(i / chunks, i % chunks));
  };
  add(decode_smem_descriptor(c.a, shape.m, chunks, "tcgen05.mma A"), shape.m);
  add(decode_smem_descriptor(c.b, shape.n, chunks, "tcgen05.mma B"), shape.n);
  return f;
}

void run_mma(const MmaCommand& c, const SharedMemory& shared, TensorMemory& tensor,
             bool zero_group_raises) {
  const MmaShape shape = check_shape(c, tensor);
  const auto a = gather(decode_smem_descriptor(c.a, shape.m, chunks, "tcgen05.mma A"), shape.m,
                        shared, "tcgen05.mma A");
  const auto b = gather(decode_smem_descriptor(c.b, shape.n, chunks, "tcgen05.mma B"), shape.n,
                        shared, "tcgen05.mma B");
  const auto sfa = gather_scales(tensor, c.sfa, shape.m, c.block, shape.sfa_id, "tcgen05.mma SFA");
  const auto sfb = gather_scales(tensor, c.sfb, shape.n, c.block, shape.sfb_id, "tcgen05.mma SFB");
  const uint32_t column = TensorMemory::column_of(c.d);
  uint32_t* d = nullptr;
  for (uint32_t lane = shape.m; lane-- > 0;) {
    if (c.accumulate) tensor.read_row(lane, column, shape.n, "tcgen05.mma with enable-input-d");
    d = tensor.write_row(lane, column, shape.n, "tcgen05.mma D");
  }
  const MmaOperands operands{a.data(), b.data(),    sfa.data(),     sfb.data(),    shape.m,
                             shape.n,  shape.scale, shape.negate_a, shape.negate_b};
  mma_block_scaled(operands, d, TensorMemory::columns, c.accumulate, zero_group_raises);
}

}  // namespace emu
