// SPDX-License-Identifier: MIT
// The epilogue's fields of a descriptor, in the form that kernels read.
#pragma once

#include "kernel/common/epilogue.h"
#include "kernel/common/gate.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// The desc must have passed check_gemm.
EpilogueParams make_epilogue(const nvfp4_gemm_desc& desc);

// Whether an epilogue of the general kind has D by rows without scales, and no bias by rows: it is
// general because of C, an activation or maxima.
bool is_of_fields(const EpilogueParams& epilogue);

// The additional parameters of a gated product.
GateParams make_gate(const nvfp4_gemm_desc& desc);

// Whether C is read: it exists, and beta is not a host value of 0.
bool may_read_c(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
