// SPDX-License-Identifier: MIT
// Kernels for 10.x that do not exist yet, as the model sees them: what a step would be worth.
#pragma once

#include "tools/model/simulate.h"

namespace model {

struct Step {
  Kernel kernel;
  int grids = 1;  // whose CTAs fit an SM
};

// The first is the kernel as it is, with tiles of 64 tokens.
std::vector<Step> steps(const Machine& machine);

}  // namespace model
