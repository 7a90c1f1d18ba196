// SPDX-License-Identifier: MIT
// nvfp4 run with options of the epilogue.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Runs the problem and requires the reference's bits; sums that are not exact are refused. The exit
// code.
int run_general(const RunOptions& options, const support::Driver& driver,
                const support::DeviceInfo& device);

}  // namespace nvfp4_tool
