// SPDX-License-Identifier: MIT
// The formats of quantized operands by number, as the header counts them. Plain C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

enum OperandFormatNumber : uint32_t {
  kFormatNvfp4,      // a UE4M3 scale for each 16 elements of K
  kFormatMxfp4,      // UE8M0, 32
  kFormatE2m1Ue8m0,  // UE8M0, 16
};

}  // namespace nvfp4
