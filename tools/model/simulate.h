// SPDX-License-Identifier: MIT
// Discrete events: every stage of every tile of a launch.
#pragma once

#include "tools/model/kernels.h"

namespace model {

struct Result {
  double us = 0;     // first CTA's start to last store
  double clock = 0;  // GHz
  double dram_bytes = 0, bytes = 0;
  double first_full_ns = 0, last_full_ns = 0, last_product_ns = 0;  // of the first unit
  double matrix_share = 0;  // of the units' time that the matrix unit works
};

Result simulate(const Machine& machine, const Kernel& kernel, const Shape& shape);

}  // namespace model
