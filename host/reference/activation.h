// SPDX-License-Identifier: MIT
#pragma once

#include "host/base/f32.h"

namespace nvfp4 {

// An NVFP4_ACTIVATION_ of x by the formulas of docs/numerics.md, "Activations", from which a kernel
// computes the same bits. SiLU is x / (1 + exp(-alpha * x)), alpha from 1/64 to 64.
F32 activate(int32_t activation, F32 x, F32 alpha = {0x3F800000});

}  // namespace nvfp4
