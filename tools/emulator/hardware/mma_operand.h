// SPDX-License-Identifier: MIT
// An operand of tcgen05.mma in shared memory: 32 bytes of K per row, K-major or MN-major.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/emulator/memory/shared_memory.h"

namespace emu {

constexpr uint32_t operand_row_bytes = 32;

// The rows of an operand that have bytes which were never written. Results computed from them have
// no value.
struct MissingRows {
  std::vector<uint8_t> rows;  // 1: lacks some
  std::string why;            // of the first; empty: no row does

  void add(uint32_t row, const char* who, const char* what, uint32_t where);
  void add(uint32_t row, const std::string& reason);
  bool any() const { return !why.empty(); }
};

struct MmaOperand {
  uint64_t descriptor;
  uint32_t rows;           // of this CTA
  bool transposed;         // MN-major: neighbouring rows are neighbours in memory
  uint32_t element_bytes;  // counts only if transposed
  const char* name;        // "tcgen05.mma A"
  // Bytes of data in the 16 bytes that hold 16 elements. With 4- and 6-bit elements the other bytes
  // are padding and are not copied.
  uint32_t chunk_data = 16;

  // The 16-byte chunks it reads. Throws Fault on a descriptor that does not fit.
  std::vector<uint32_t> chunks() const;
  // Writes rows x 32 bytes, K-major, to `packed`. Row r of this operand is row first + r of
  // `missing`.
  void gather(const SharedMemory& shared, uint8_t* packed, uint32_t first,
              MissingRows& missing) const;
};

}  // namespace emu
