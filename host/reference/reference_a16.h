// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// reference_gemm where A is fp16 or bf16.
void reference_gemm_a16(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
