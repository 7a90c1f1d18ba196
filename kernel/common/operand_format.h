// SPDX-License-Identifier: MIT
// Numbers of the formats of quantized operands, as in the header. Plain C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

enum OperandFormatNumber : uint32_t {
  kFormatNvfp4,      // a UE4M3 scale per 16 elements of K
  kFormatMxfp4,      // UE8M0, 32
  kFormatE2m1Ue8m0,  // UE8M0, 16
};

}  // namespace nvfp4
