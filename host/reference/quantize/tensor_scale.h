// SPDX-License-Identifier: MIT
// The tensor scale made from the elements: t = amax / 2688 over the finite ones.
#pragma once

#include <algorithm>

#include "host/base/f32.h"
#include "host/base/formats.h"

namespace nvfp4 {

// Returns 1 if the quotient is 0: every element is then so small that its code is 0.
inline F32 tensor_scale_of_amax(F32 amax) {
  constexpr F32 kOne{0x3F800000};
  constexpr F32 kLargestProduct{0x45280000};  // 2688 = 6 * 448
  const F32 t = amax / kLargestProduct;
  return absolute(t).bits == 0 ? kOne : t;
}

class LargestFinite {
 public:
  void add(F32 x) {
    const uint32_t magnitude = absolute(x).bits;
    if (magnitude < kF32.overflow_code) bits_ = std::max(bits_, magnitude);
  }
  F32 tensor_scale() const { return tensor_scale_of_amax({bits_}); }

 private:
  uint32_t bits_ = 0;
};

}  // namespace nvfp4
