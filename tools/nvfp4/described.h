// SPDX-License-Identifier: MIT
// A command's options as the library's descriptor.
#pragma once

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Sizes and strides as `run` arranges them, without memory. The addresses are checked but never
// read, and are so far apart that nothing overlaps.
nvfp4_gemm_desc describe(const RunOptions& options);

// With the variant that a B200 would take, where --allow-unproven asks for one and no plan for that
// compute capability takes its kernels unasked. The options otherwise.
RunOptions with_variant(RunOptions options, int32_t capability);

}  // namespace nvfp4_tool
