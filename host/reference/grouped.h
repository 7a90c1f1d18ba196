// SPDX-License-Identifier: MIT
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// A grouped product on the CPU. Batches of `gemm` are groups. Both descs have been checked for
// Caller::reference.
void reference_grouped(const nvfp4_grouped_desc& grouped, const nvfp4_gemm_desc& gemm);

}  // namespace nvfp4
