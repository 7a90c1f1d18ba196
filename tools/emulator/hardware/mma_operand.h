// SPDX-License-Identifier: MIT
// An operand of tcgen05.mma in shared memory: 32 bytes of K per row, K-major or MN-major.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/emulator/memory/shared_memory.h"

namespace emu {

constexpr uint32_t operand_row_bytes = 32;

struct MmaOperand {
  uint64_t descriptor;
  uint32_t rows;           // of this CTA
  bool transposed;         // MN-major: neighbouring rows are neighbours in memory
  uint32_t element_bytes;  // counts only if transposed
  const char* name;        // "tcgen05.mma A"
  // Of the 16 bytes of 16 elements; 4- and 6-bit elements leave the rest as it is.
  uint32_t chunk_data = 16;

  // The 16-byte chunks it reads. Throws Fault on a descriptor that does not fit.
  std::vector<uint32_t> chunks() const;
  // rows x 32 bytes, K-major.
  void gather(const SharedMemory& shared, uint8_t* packed) const;
};

}  // namespace emu
