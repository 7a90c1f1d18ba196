// SPDX-License-Identifier: MIT
// Checks that the tensors of a layer have the types and shapes of its dialect.
#pragma once

#include "tools/nvfp4/layers.h"

namespace nvfp4_tool {

// These throw Refusal.
void check_types(const Layer& layer);
void check_shapes(const Layer& layer);

std::string words(const std::vector<int64_t>& shape);  // "[2, 3]"

}  // namespace nvfp4_tool
