// SPDX-License-Identifier: MIT
// `nvfp4 tune --every`: each variant and split that a shape may run by, what the planner predicts
// and what was measured, as rows of a CSV, which bench/planner.py reads. Pure: tests give it times.
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
  std::string name;  // as desc.variant has it; "": the planner's choice
  PlanSummary plan;
  std::vector<double> us;  // none: not timed

  bool chosen() const { return name.empty(); }
};

constexpr int kEveryScreened = 5, kEveryReplays = 21;

// Of a shape, the planner's choice first.
std::vector<EveryRow> every_row(const support::Shape& shape, int32_t a_type,
                                const Candidates& candidates);

// Indices of the planner's choice and of what it does not predict to take more than three times as
// long: tiles for one token, of which hundreds of tokens would take milliseconds.
std::vector<size_t> worth_timing(const std::vector<EveryRow>& rows);

// Of the planner's choice and the fastest six of those timed.
std::vector<size_t> worth_timing_again(const std::vector<EveryRow>& rows);

std::string write_every(const std::string& device, int32_t sms, const std::vector<EveryRow>& rows);

}  // namespace nvfp4_tool
