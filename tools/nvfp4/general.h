// SPDX-License-Identifier: MIT
// nvfp4 run with options of the epilogue.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Runs the problem, requires the reference's bits and returns the exit code. Refuses problems whose
// sums are not exact.
int run_general(const RunOptions& options, const support::Driver& driver,
                const support::DeviceInfo& device);

}  // namespace nvfp4_tool
