// SPDX-License-Identifier: MIT
// What the reference makes of a sum: the header's NUMERICS from acc to the element of D.
#pragma once

#include "host/base/f32.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

struct Place {  // of an element of C and D
  int64_t batch, row, column;
};

class ReferenceEpilogue {
 public:
  // Reads alpha, beta and the scale of A where they lie. `desc` outlives the epilogue.
  explicit ReferenceEpilogue(const nvfp4_gemm_desc& desc);

  void store(const Place& at, F32 acc) const;

 private:
  F32 scaled(const Place& at, F32 acc) const;

  const nvfp4_gemm_desc& g_;
  F32 scale_;  // alpha, times the tensor scale of A if there is one
  F32 beta_;
  bool adds_c_;
};

}  // namespace nvfp4
