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

// What a product of few tokens takes with tiles of 64 or 128 tokens whose K is cut into parts for
// the CTAs of a cluster, only the sums of tokens that exist being exchanged. `ahead`: two loads of
// tensor memory are under way in the epilogue.
struct Cut {
  int tokens, parts;
  bool ahead;
};
const std::vector<Cut>& cuts();
Kernel cut_kernel(const Machine& machine, const Cut& cut, const Shape& shape);

}  // namespace model
