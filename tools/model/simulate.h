// SPDX-License-Identifier: MIT
// Discrete events: every stage of every tile of a launch.
#pragma once

#include "tools/model/kernels.h"

namespace model {

// Launches back to back, each of operands of its own.
struct Launches {
  int count = 1;
  bool programmatic = false;  // weights are loaded before the launch before has ended
  int grids = 1;              // whose CTAs fit an SM at once
};

struct Result {
  double interval_us = 0;  // of several launches, from one end to the next
  double us = 0;           // first CTA's start to last store
  double clock = 0;        // GHz
  double dram_bytes = 0, bytes = 0;
  double first_full_ns = 0, last_full_ns = 0, last_product_ns = 0;  // of the first unit
  double matrix_share = 0;  // of the units' time that the matrix unit works
};

Result simulate(const Machine& machine, const Kernel& kernel, const Shape& shape);

// Not of persistent kernels, which throw std::invalid_argument.
Result simulate(const Machine& machine, const Kernel& kernel, const Shape& shape,
                const Launches& many);

}  // namespace model
