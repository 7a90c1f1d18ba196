// SPDX-License-Identifier: MIT
#include "tools/nvfp4/every.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/chooser.h"

namespace nvfp4_tool {

namespace {

constexpr double kTooSlow = 3;
constexpr size_t kFastest = 6;

std::string head_of(const EveryRow& row) {
  const support::Shape& s = row.shape;
  char text[128];
  std::snprintf(text, sizeof text, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s", s.m, s.n,
                s.k, s.l, word_of(row.a_type));
  return text;
}

std::string text_of(const EveryRow& row) {
  const PlanSummary& plan = row.plan;
  const std::string whole = plan.whole != 0 ? "+" + std::to_string(plan.whole) : "";
  char text[256];
  std::snprintf(text, sizeof text, "%s/%" PRId64 "%s %.2f", plan.variant.c_str(), plan.split,
                whole.c_str(), plan.predicted_us);
  if (row.us.empty()) return text;
  const Statistic us = statistic_of(row.us);
  char times[96];
  std::snprintf(times, sizeof times, " %zu %.3f %.3f %.3f", row.us.size(), us.median, us.p10,
                us.p90);
  return std::string(text) + times;
}

// The choice, what was timed at length, what was timed, the rest; of each the fastest first.
bool stands_before(const EveryRow& a, const EveryRow& b) {
  if (a.chosen() != b.chosen()) return a.chosen();
  if (a.us.size() != b.us.size()) return a.us.size() > b.us.size();
  if (a.us.empty()) return a.plan.predicted_us < b.plan.predicted_us;
  return statistic_of(a.us).median < statistic_of(b.us).median;
}

}  // namespace

std::vector<EveryRow> every_row(const support::Shape& shape, int32_t a_type,
                                const Candidates& candidates) {
  std::vector<EveryRow> rows = {{shape, a_type, "", candidates.choice, {}}};
  for (const Candidate& each : candidates.others) {
    rows.push_back({shape, a_type, each.name, each.plan, {}});
  }
  return rows;
}

std::vector<size_t> worth_timing(const std::vector<EveryRow>& rows) {
  std::vector<size_t> all;
  const double most = kTooSlow * rows.at(0).plan.predicted_us;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].plan.predicted_us <= most) all.push_back(i);
  }
  return all;
}

std::vector<size_t> worth_timing_again(const std::vector<EveryRow>& rows) {
  std::vector<Measured> others;
  std::vector<size_t> where;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].us.empty()) continue;
    others.push_back({rows[i].name, rows[i].us});
    where.push_back(i);
  }
  std::vector<size_t> again = {0};
  for (const size_t i : finalists(others, kFastest)) again.push_back(where[i]);
  return again;
}

std::string write_every(const std::string& device, int32_t sms, std::vector<EveryRow> rows) {
  std::string text =
      "# Microseconds by graph replay, weights cold: every variant and split, and the planner's.\n"
      "# device    " +
      device + ", " + std::to_string(sms) + " SMs\n# library   " + nvfp4_build_info() +
      "\n# a plan    variant/parts of K+whole tiles, predicted us; where it was timed, replays, "
      "us, "
      "its 10th and 90th percentile\n"
      "m,n,k,l,a_type,the planner's choice,the others from the fastest on";
  for (auto at = rows.begin(); at != rows.end();) {
    const auto end = std::find_if(at + 1, rows.end(), [](const EveryRow& r) { return r.chosen(); });
    std::stable_sort(at, end, stands_before);
    text += "\n" + head_of(*at);
    for (; at != end; ++at) text += "," + text_of(*at);
  }
  return text + "\n";
}

}  // namespace nvfp4_tool
