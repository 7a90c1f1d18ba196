// SPDX-License-Identifier: MIT
// What the model says of this library's grouped products on a B200, beside published times of
// other kernels.
#pragma once

#include "tools/model/simulate.h"

namespace model {

struct Groups {
  int64_t count, m, n, k;  // of each group
  double published_us;
};

// Masked NVFP4 products, B200 class, two sources that are named there.
const std::vector<Groups>& published_groups();

struct GroupedForecast {
  std::string kernel;  // the entry that takes less
  double us = 1e300;
  double reading_us = 0;  // of all weights and their scales, at the rate of DRAM
};
GroupedForecast grouped_forecast(const Machine& machine, const Groups& groups);

}  // namespace model
