// SPDX-License-Identifier: MIT
// nvfp4_quantize_desc on the host: x of any type; t by value, read, or made. Arguments have been
// checked.
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

void quantize_typed(const nvfp4_quantize_desc& desc);
void dequantize_typed(const nvfp4_quantize_desc& desc);

}  // namespace nvfp4
