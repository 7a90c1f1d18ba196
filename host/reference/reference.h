// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// The product on the CPU. `desc` has been checked for Caller::reference and is not empty.
void reference_gemm(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
