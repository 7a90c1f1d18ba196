// SPDX-License-Identifier: MIT
#include "tools/nvfp4/chooser.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "nvfp4_gemm.h"
#include "tools/harness/gpu_timer.h"
#include "tools/nvfp4/gpus.h"

namespace nvfp4_tool {

namespace {

std::string text_of(const TunedRow& row) {
  const support::Shape& s = row.shape;
  char times[64];
  std::snprintf(times, sizeof times, ",%.3f,%.3f\n", row.us, row.planned_us);
  return std::to_string(s.m) + "," + std::to_string(s.n) + "," + std::to_string(s.k) + "," +
         std::to_string(s.l) + "," + word_of(row.a_type) + "," + row.variant + times;
}

}  // namespace

const char* word_of(int32_t a_type) {
  if (a_type == NVFP4_TYPE_F16) return "f16";
  return a_type == NVFP4_TYPE_BF16 ? "bf16" : "nvfp4";
}

Statistic statistic_of(const std::vector<double>& us) {
  return {support::median(us), support::quantile(us, 0.1), support::quantile(us, 0.9)};
}

const Measured* choose_variant(const Measured& planned, const std::vector<Measured>& others) {
  const Measured* best = nullptr;
  for (const Measured& each : others) {
    const bool faster =
        best == nullptr || statistic_of(each.us).median < statistic_of(best->us).median;
    if (faster) best = &each;
  }
  if (best == nullptr) return nullptr;
  const Statistic before = statistic_of(planned.us), after = statistic_of(best->us);
  const double gain = before.median - after.median;
  const double noise = std::max(before.spread(), after.spread());
  return gain > noise && gain > kLeastGain * before.median ? best : nullptr;
}

std::vector<size_t> finalists(const std::vector<Measured>& all, size_t count) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return statistic_of(all[x].us).median < statistic_of(all[y].us).median;
  });
  order.resize(std::min(count, order.size()));
  return order;
}

std::string write_table(const std::string& device, int32_t capability, int32_t sms, bool any_bits,
                        const std::vector<TunedRow>& rows) {
  std::string text = "# " + device + ", compute capability " + to_capability(capability) + ", " +
                     std::to_string(sms) + " SMs; " + (any_bits ? "any" : "the planner's") +
                     " bits\n# " + nvfp4_build_info() + "\nm,n,k,l,a_type,variant,us,planned_us\n";
  for (const TunedRow& row : rows) text += text_of(row);
  return text;
}

}  // namespace nvfp4_tool
