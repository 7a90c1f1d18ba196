// SPDX-License-Identifier: MIT
#pragma once

#include "host/base/f32.h"

namespace nvfp4 {

// An NVFP4_ACTIVATION_ of x by the formulas of docs/numerics.md, "Activations", from which a kernel
// computes the same bits.
F32 activate(int32_t activation, F32 x);

}  // namespace nvfp4
