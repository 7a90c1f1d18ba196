// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// A grouped product on the CPU: batches of `desc` are groups, of which g has the rows from
// row_ends[g-1] to row_ends[g] of A, C and D. It has been checked for Caller::reference.
void reference_grouped(const nvfp4_gemm_desc& desc, const int32_t* row_ends);

}  // namespace nvfp4
