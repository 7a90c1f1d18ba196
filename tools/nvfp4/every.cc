// SPDX-License-Identifier: MIT
#include "tools/nvfp4/every.h"

#include <cinttypes>
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/chooser.h"

namespace nvfp4_tool {

namespace {

constexpr double kTooSlow = 3;
constexpr size_t kFastest = 6;

std::string text_of(const EveryRow& row) {
  const support::Shape& s = row.shape;
  const PlanSummary& plan = row.plan;
  char text[256];
  std::snprintf(text, sizeof text,
                "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%s,%" PRId64 ",%" PRId64
                ",%" PRId64 ",%d,%.2f,%zu,",
                s.m, s.n, s.k, s.l, word_of(row.a_type), plan.variant.c_str(), plan.split,
                plan.whole, plan.ctas, row.chosen() ? 1 : 0, plan.predicted_us, row.us.size());
  if (row.us.empty()) return std::string(text) + ",,\n";
  const Statistic us = statistic_of(row.us);
  char times[96];
  std::snprintf(times, sizeof times, "%.3f,%.3f,%.3f\n", us.median, us.p10, us.p90);
  return std::string(text) + times;
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

std::string write_every(const std::string& device, int32_t sms, const std::vector<EveryRow>& rows) {
  std::string text =
      "# Microseconds by graph replay, weights cold: every variant and split, and the planner's.\n"
      "# device    " +
      device + ", " + std::to_string(sms) + " SMs\n# library   " + nvfp4_build_info() +
      "\nm,n,k,l,a_type,variant,split,whole,ctas,chosen,predicted_us,replays,us,us_p10,us_p90\n";
  for (const EveryRow& row : rows) text += text_of(row);
  return text;
}

}  // namespace nvfp4_tool
