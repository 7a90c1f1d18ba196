// SPDX-License-Identifier: MIT
// Lists of shapes as bench and tune take them.
#pragma once

#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace nvfp4_tool {

// "MxNxK" or "MxNxKxL" each, then those of a file with one a line unless its name is "". Throws
// UsageError.
std::vector<support::Shape> read_shapes(const std::vector<std::string>& texts,
                                        const std::string& list);

}  // namespace nvfp4_tool
