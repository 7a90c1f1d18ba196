// SPDX-License-Identifier: MIT
#pragma once

#include "include/nvfp4_gemm.h"

namespace nvfp4 {

// Enqueues on the caller's stream of the current context. `desc` has been checked and is not empty.
nvfp4_status launch_gemm(const nvfp4_gemm_desc& desc, void* stream);

}  // namespace nvfp4
