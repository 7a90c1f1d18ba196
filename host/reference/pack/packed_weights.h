// SPDX-License-Identifier: MIT
// Elements and scales of packed weights by their place, for the reference: written from
// docs/packing.md, apart from the packer in pack.cc.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

// One matrix.
class PackedWeights {
 public:
  PackedWeights(const uint8_t* units, int64_t k, int32_t format, int32_t packing)
      : units_(units), k_(k), format_(format), packing_(packing) {}

  // The E2M1 code.
  uint8_t code(int64_t row, int64_t k) const;
  // The byte of the elements k and k + 1, as in a checkpoint; k is even.
  uint8_t byte(int64_t row, int64_t k) const {
    return static_cast<uint8_t>(code(row, k) | code(row, k + 1) << 4);
  }
  // The scale of the elements of block `ks`, as in a checkpoint.
  uint8_t scale(int64_t row, int64_t ks) const;

 private:
  bool of_32() const { return format_ == NVFP4_OPERAND_FORMAT_MXFP4; }
  // The unit of NVFP4_PACKING_SM90_1.
  const uint8_t* unit(int64_t row, int64_t k) const {
    return units_ + (row / 64 * ((k_ + 63) / 64) + k / 64) * (of_32() ? 2176 : 2304);
  }
  uint8_t code_sm90(int64_t row, int64_t k) const;
  uint8_t scale_sm90(int64_t row, int64_t ks) const;
  // The k-block of NVFP4_PACKING_SM100_1, and its elements of K.
  struct KBlock {
    const uint8_t* first;
    int64_t k;
  };
  KBlock k_block(int64_t row, int64_t k) const;

  const uint8_t* units_;
  int64_t k_;
  int32_t format_, packing_;
};

// The weights of a batch, of b or b2.
PackedWeights packed_batch(const nvfp4_gemm_desc& g, const void* b, int64_t batch);

}  // namespace nvfp4
