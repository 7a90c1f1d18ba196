// SPDX-License-Identifier: MIT
// The one argument of the sm_100a kernels. Plain C++, no CUDA.
#pragma once

#include "kernel/divisor.h"
#include "kernel/params.h"

namespace nvfp4 {

struct Sm100Params {
#include "kernel/params.def"
  EpilogueParams epilogue;
  Divisor by_tiles_m, by_tiles_n;  // of the index of a CTA
};
NVFP4_CHECK_PARAMS(Sm100Params);
static_assert(NVFP4_OFFSET_IS(Sm100Params, epilogue, 344));

}  // namespace nvfp4
