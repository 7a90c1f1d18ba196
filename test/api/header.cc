// SPDX-License-Identifier: MIT
// The header as C++11 sees it, with every warning an error; compiled only.
#include "nvfp4_gemm.h"

nvfp4_gemm_desc empty_problem();
nvfp4_gemm_desc empty_problem() {
  nvfp4_gemm_desc desc = NVFP4_GEMM_DESC_INIT;
  return desc;
}

nvfp4_grouped_desc no_groups();
nvfp4_grouped_desc no_groups() {
  nvfp4_gemm_addresses addresses = NVFP4_GEMM_ADDRESSES_INIT;
  nvfp4_plan_info info = NVFP4_PLAN_INFO_INIT;
  nvfp4_quantize_desc quantize = NVFP4_QUANTIZE_DESC_INIT;
  nvfp4_fused_quantize_desc fused = NVFP4_FUSED_QUANTIZE_DESC_INIT;
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.struct_size +=
      addresses.struct_size + info.struct_size + quantize.struct_size + fused.struct_size;
  return grouped;
}
