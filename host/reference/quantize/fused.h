// SPDX-License-Identifier: MIT
// silu(x) * y and RMSNorm to NVFP4 on the host; arguments have been checked.
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

void fused_quantize(const nvfp4_fused_quantize_desc& desc);

}  // namespace nvfp4
