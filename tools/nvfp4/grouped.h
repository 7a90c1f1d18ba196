// SPDX-License-Identifier: MIT
// nvfp4 run with --groups.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Runs the product of the groups and requires the reference's bits; sums that are not exact are
// refused. The exit code.
int run_grouped(const RunOptions& options, const support::Driver& driver,
                const support::DeviceInfo& device);

}  // namespace nvfp4_tool
