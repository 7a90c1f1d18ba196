// SPDX-License-Identifier: MIT
#include "tools/model/grouped.h"

namespace model {

const std::vector<Groups>& published_groups() {
  // flashinfer-ai/flashinfer, pull request 2503, and issue 1502 for the last.
  static const std::vector<Groups> all = {
      {18, 28, 4096, 7168, 67},  {18, 28, 7168, 2048, 38},  {18, 113, 4096, 7168, 72},
      {18, 227, 4096, 7168, 96}, {18, 455, 4096, 7168, 153}, {6, 980, 4096, 7168, 87}};
  return all;
}

// Groups have tiles of their own, so their weights one below the other, with the rows of one group,
// have as many tiles and load the same, but for the rows of the other groups. These are 1 % of the
// bytes where a group has 28 rows, and a sixth where it has 980.
GroupedForecast grouped_forecast(const Machine& machine, const Groups& groups) {
  GroupedForecast least;
  const Shape all{groups.m, groups.count * groups.n, groups.k};
  for (const int64_t tokens : {64, 128}) {
    const Kernel kernel = sm100_grouped(machine, tokens, groups.count, groups.m);
    const double us = simulate(machine, kernel, all).us;
    if (us >= least.us) continue;
    least.us = us;
    least.kernel = kernel.name;
  }
  least.reading_us = 0.5625 * double(all.n) * double(all.k) / machine.dram_rate / 1e3;
  return least;
}

}  // namespace model
