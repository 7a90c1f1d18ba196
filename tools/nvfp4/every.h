// SPDX-License-Identifier: MIT
// `nvfp4 tune --every`: each variant and split that a shape may use, with the planner's prediction
// and the measured time, as a CSV that bench/planner.py reads: a shape is a row, a plan a cell.
// Pure functions, which tests call with times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/problem.h"
#include "tools/nvfp4/candidates.h"

namespace nvfp4_tool {

struct EveryRow {
  support::Shape shape;
  int32_t a_type;
  std::string name;  // name for desc.variant; "": the planner's choice
  PlanSummary plan;
  std::vector<double> us;  // empty: not timed

  bool chosen() const { return name.empty(); }
};

constexpr int kEveryScreened = 5, kEveryReplays = 21;

// The rows of a shape, the planner's choice first.
std::vector<EveryRow> every_row(const support::Shape& shape, int32_t a_type,
                                const Candidates& candidates);

// Indices of the planner's choice and of variants that it predicts to take at most three times as
// long. Others are skipped, such as tiles for one token, which would take milliseconds for
// hundreds.
std::vector<size_t> worth_timing(const std::vector<EveryRow>& rows);

// Indices of the planner's choice and of the fastest six that were timed.
std::vector<size_t> worth_timing_again(const std::vector<EveryRow>& rows);

// Rows of one shape after those of another, each shape's choice first.
std::string write_every(const std::string& device, int32_t sms, std::vector<EveryRow> rows);

}  // namespace nvfp4_tool
