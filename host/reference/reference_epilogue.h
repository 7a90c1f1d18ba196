// SPDX-License-Identifier: MIT
// What the reference makes of a sum, or of the two of a gated product: the header's NUMERICS from
// acc to the element of D.
#pragma once

#include "host/base/f32.h"
#include "host/base/operand_format.h"

namespace nvfp4 {

struct Place {  // of an element of C and D
  int64_t batch, row, column;
};

class ReferenceEpilogue {
 public:
  // Reads alpha, beta and the tensor scale of A from their addresses. `desc` must outlive the
  // epilogue.
  explicit ReferenceEpilogue(const nvfp4_gemm_desc& desc);

  // The elements of a row come from left to right, those of up to 32 neighbouring rows in turns.
  // acc2 is the sum with the rows of b2, of a gated product alone.
  void store(const Place& at, F32 acc, F32 acc2) const;

 private:
  // What a sum with the rows of b, or of b2, has of its own.
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
  // Values that wait for the last one of their block, by row number modulo 32.
  mutable F32 block_[32][32];
};

}  // namespace nvfp4
