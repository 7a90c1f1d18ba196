// SPDX-License-Identifier: MIT
// See mma_operand.h.
#include "tools/emulator/hardware/mma_operand.h"

#include <cstring>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/smem_descriptor.h"

namespace emu {
namespace {

constexpr uint32_t chunk_bytes = 16, k_chunks = operand_row_bytes / chunk_bytes;

// Calls f(first row, k, address): a chunk has 16 / element_bytes rows of one k.
template <class F>
void each_transposed(const MmaOperand& o, F f) {
  const uint32_t per_chunk = chunk_bytes / o.element_bytes,
                 depth = operand_row_bytes / o.element_bytes;
  const SmemDescriptor d = decode_transposed_descriptor(o.descriptor, o.rows / per_chunk, depth,
                                                        o.element_bytes, o.name);
  for (uint32_t group = 0; group < o.rows / per_chunk; ++group)
    for (uint32_t k = 0; k < depth; ++k) f(group * per_chunk, k, d.transposed_chunk(group, k));
}

// Calls f(row, chunk of K, address).
template <class F>
void each_k_major(const MmaOperand& o, F f) {
  const SmemDescriptor d = decode_smem_descriptor(o.descriptor, o.rows, k_chunks, o.name);
  for (uint32_t r = 0; r < o.rows; ++r)
    for (uint32_t c = 0; c < k_chunks; ++c) f(r, c, d.chunk(r, c));
}

}  // namespace

std::vector<uint32_t> MmaOperand::chunks() const {
  std::vector<uint32_t> all;
  all.reserve(size_t(rows) * k_chunks);
  const auto add = [&](uint32_t, uint32_t, uint32_t address) { all.push_back(address); };
  if (transposed)
    each_transposed(*this, add);
  else
    each_k_major(*this, add);
  return all;
}

void MissingRows::add(uint32_t row, const char* who, const char* what, uint32_t where) {
  rows[row] = 1;
  if (why.empty()) why = format("a %s read %s 0x%x, which was never written", who, what, where);
}

void MissingRows::add(uint32_t row, const std::string& reason) {
  rows[row] = 1;
  if (why.empty()) why = reason;
}

void MmaOperand::gather(const SharedMemory& shared, uint8_t* packed, uint32_t first,
                        MissingRows& missing) const {
  const auto lacks = [&](uint32_t address, uint32_t bytes, uint32_t row) {
    if (!shared.has_value(address, bytes, name)) missing.add(row, name, "shared address", address);
  };
  if (!transposed) {
    each_k_major(*this, [&](uint32_t r, uint32_t c, uint32_t address) {
      uint8_t* const to = packed + r * operand_row_bytes + c * chunk_bytes;
      const bool whole = chunk_data == chunk_bytes;
      if (const uint8_t* from = whole ? shared.readable(address, chunk_bytes) : nullptr) {
        std::memcpy(to, from, chunk_bytes);
        return;
      }
      std::memcpy(to, shared.view_any(address, chunk_data, name), chunk_data);
      lacks(address, chunk_data, first + r);
    });
    return;
  }
  const uint32_t per_chunk = chunk_bytes / element_bytes;
  each_transposed(*this, [&](uint32_t row, uint32_t k, uint32_t address) {
    const uint8_t* const whole = shared.readable(address, chunk_bytes);
    const uint8_t* from = whole ? whole : shared.view_any(address, chunk_bytes, name);
    for (uint32_t i = 0; i < per_chunk; ++i) {
      std::memcpy(packed + (row + i) * operand_row_bytes + k * element_bytes,
                  from + i * element_bytes, element_bytes);
      if (!whole) lacks(address + i * element_bytes, element_bytes, first + row + i);
    }
  });
}

}  // namespace emu
