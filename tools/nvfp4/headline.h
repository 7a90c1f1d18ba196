// SPDX-License-Identifier: MIT
// nvfp4 run --headline: the three shapes of the GPU MODE nvfp4_gemm task, a row each.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

int headline(const RunOptions& options, const support::Driver& driver,
             const support::DeviceInfo& device);

}  // namespace nvfp4_tool
