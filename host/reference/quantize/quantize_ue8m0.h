// SPDX-License-Identifier: MIT
// E2M1 with UE8M0 scales on the host, in integers; arguments have been checked.
#pragma once

#include "host/base/f32.h"

namespace nvfp4 {

// Quantizes `count` elements, 16 or 32, to codes and a scale by an NVFP4_SCALE_RULE.
void quantize_ue8m0(const F32* x, int count, int32_t rule, uint8_t* codes, uint8_t* scale);
void dequantize_ue8m0(const uint8_t* codes, int count, uint8_t scale, F32* x);

}  // namespace nvfp4
