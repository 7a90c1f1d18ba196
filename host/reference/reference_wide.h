// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// reference_gemm for operands of a wide range: A is fp16 or bf16, or scales are UE8M0.
void reference_gemm_wide(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
