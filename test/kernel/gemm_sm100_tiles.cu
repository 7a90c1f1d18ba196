// SPDX-License-Identifier: MIT
// The tile widths of the kernel that no shipped variant uses, so that they stay true: built to PTX
// and run by test/kernel/tiles.cc.
#include "../../kernel/gemm_sm100.cu"

#define NVFP4_TEST_TILE(tokens)                                                        \
  extern "C" __global__ void __launch_bounds__(nvfp4::Sm100Tile<tokens>::kThreads, 1)  \
      test_gemm_sm100_128x##tokens(const __grid_constant__ nvfp4::GemmParams params) { \
    nvfp4::gemm_sm100<nvfp4::Sm100Tile<tokens>>(params);                               \
  }

NVFP4_TEST_TILE(64)
NVFP4_TEST_TILE(256)
