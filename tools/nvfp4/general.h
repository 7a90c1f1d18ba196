// SPDX-License-Identifier: MIT
// nvfp4 run with options of the epilogue.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/outcome.h"

namespace nvfp4_tool {

// Runs the problem and compares D with the reference's bits. Refuses problems whose sums are not
// exact.
Outcome run_general(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device);

}  // namespace nvfp4_tool
