// SPDX-License-Identifier: MIT
// From a sum, or the two sums of a gated product, to an element of D, as in the header's NUMERICS.
#pragma once

#include "host/base/f32.h"
#include "host/base/operand_format.h"

namespace nvfp4 {

struct Place {  // where an element of C and D is
  int64_t batch, row, column;
};

class ReferenceEpilogue {
 public:
  // Reads alpha, beta and the tensor scale of A from their addresses. `desc` must outlive the
  // epilogue.
  explicit ReferenceEpilogue(const nvfp4_gemm_desc& desc);

  // Call this for the elements of a row from left to right. Up to 32 neighbouring rows may be
  // interleaved. acc2 is the sum with the rows of b2, only for gated products.
  void store(const Place& at, F32 acc, F32 acc2) const;

 private:
  // The factors and bias of the sums with the rows of b, or with those of b2.
  struct Weights {
    F32 scale;  // alpha, times the tensor scale of A if there is one
    const float* tensor_scale;
    const void* bias;
  };
  Weights weights(float alpha, const float* alpha_device, const float* tensor_scale,
                  const void* bias) const;
  F32 scaled(const Place& at, const Weights& weights, F32 acc) const;
  F32 biased(const Place& at, const Weights& weights, F32 x) const;
  F32 value(const Place& at, F32 acc, F32 acc2) const;
  F32 gated(F32 x, F32 y) const;
  void quantize(const Place& last) const;
  void take_amax(const Place& at, F32 x) const;
  uint8_t* scale_of_d(const Place& at) const;

  const nvfp4_gemm_desc& g_;
  Weights b_, b2_;
  F32 beta_;
  bool adds_c_;
  const OperandFormat* d_format_;  // NULL: D has no scales
  // Values of blocks that are not complete yet, by row number modulo 32.
  static constexpr int64_t kMostInBlock = 32;
  static_assert(most_in_block() <= kMostInBlock);
  mutable F32 block_[32][kMostInBlock];
};

}  // namespace nvfp4
