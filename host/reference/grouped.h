// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// A grouped product on the CPU. Batches of `desc` are groups; group g has rows row_ends[g-1] to
// row_ends[g] of A, C and D. The desc has been checked for Caller::reference.
void reference_grouped(const nvfp4_gemm_desc& desc, const int32_t* row_ends);

}  // namespace nvfp4
