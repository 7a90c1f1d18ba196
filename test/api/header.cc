// SPDX-License-Identifier: MIT
// The header as C++11 sees it, with every warning an error; compiled only.
#include "nvfp4_gemm.h"

nvfp4_gemm_desc empty_problem();
nvfp4_gemm_desc empty_problem() {
  nvfp4_gemm_desc desc = NVFP4_GEMM_DESC_INIT;
  return desc;
}
