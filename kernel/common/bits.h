// SPDX-License-Identifier: MIT
// A field of a descriptor. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/host_device.h"

namespace nvfp4 {

NVFP4_HOST_DEVICE constexpr uint64_t bits(uint64_t value, int position, int width) {
  return (value & ((uint64_t{1} << width) - 1)) << position;
}

}  // namespace nvfp4
