// SPDX-License-Identifier: MIT
// The epilogue's fields of a descriptor, in the form that kernels read.
#pragma once

#include "kernel/common/epilogue.h"
#include "kernel/common/gate.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// The desc must have passed check_gemm.
EpilogueParams make_epilogue(const nvfp4_gemm_desc& desc);

// The additional parameters of a gated product.
GateParams make_gate(const nvfp4_gemm_desc& desc);

// Whether C is read: it exists, and beta is not a host value of 0.
bool may_read_c(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
