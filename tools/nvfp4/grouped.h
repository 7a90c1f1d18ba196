// SPDX-License-Identifier: MIT
// nvfp4 run with --groups.
#pragma once

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/outcome.h"

namespace nvfp4_tool {

// Runs the product of the groups and compares D with the reference's bits. Refuses sums that are
// not exact.
Outcome run_grouped(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device);

}  // namespace nvfp4_tool
