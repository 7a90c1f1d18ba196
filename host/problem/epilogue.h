// SPDX-License-Identifier: MIT
// The epilogue's fields of a descriptor, in the form that kernels read.
#pragma once

#include "kernel/common/epilogue.h"
#include "kernel/common/gate.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// The desc must have passed check_gemm.
EpilogueParams make_epilogue(const nvfp4_gemm_desc& desc);

// What a gated product has beside.
GateParams make_gate(const nvfp4_gemm_desc& desc);

// There is a C, and no beta by value that is 0.
bool may_read_c(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
