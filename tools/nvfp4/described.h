// SPDX-License-Identifier: MIT
// A command's options as the library's descriptor.
#pragma once

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Sizes and strides as `run` arranges them, without memory. The addresses are checked but never
// read, and are so far apart that nothing overlaps.
nvfp4_gemm_desc describe(const RunOptions& options);

}  // namespace nvfp4_tool
