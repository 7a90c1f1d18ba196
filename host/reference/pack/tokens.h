// SPDX-License-Identifier: MIT
// Packed tokens by their place, written from docs/packing.md: what the quantizers on the CPU write,
// and what the reference reads.
#pragma once

#include <cstdint>

#include "host/base/f32.h"

namespace nvfp4 {

// One matrix in NVFP4_PACKING_SM90_TOKENS_1.
class PackedTokens {
 public:
  PackedTokens(const void* memory, int64_t rows, int64_t k)
      : memory_(static_cast<uint8_t*>(const_cast<void*>(memory))), rows_(rows), k_(k) {}

  // Everything becomes 0, also what lies beyond k.
  void clear() const;
  // 16 elements from k on, and their UE4M3 scale.
  void set_block(int64_t row, int64_t k, const uint8_t* codes, uint8_t scale) const;

  // The fp16 number that is stored: 2^-7 times the element times its scale.
  uint16_t half(int64_t row, int64_t k) const;
  F32 value(int64_t row, int64_t k) const;  // the element times its scale

 private:
  uint8_t* at(int64_t row, int64_t k) const;

  uint8_t* memory_;
  int64_t rows_, k_;
};

}  // namespace nvfp4
