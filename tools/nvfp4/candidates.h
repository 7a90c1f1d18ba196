// SPDX-License-Identifier: MIT
// The variants that the library could run for a problem, the planner's opinion of each, and whether
// their D has the same bits as the planner's choice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// A plan as nvfp4_gemm_describe reports it.
struct PlanSummary {
  std::string variant;
  int64_t split = 1, whole = 0, ctas = 0;  // whole: tiles that a single CTA computes
  double predicted_us = 0;                 // 0: the planner's cost is no time
};

struct Candidate {
  std::string name;  // name for desc.variant
  PlanSummary plan;
  bool same_bits = false;  // same bits as the planner's choice, on random data, D in fp32
};

struct Candidates {
  std::string planned;  // the planner's choice for readers: "sm90_64x16x256, split 2"
  PlanSummary choice;   // the same
  std::vector<Candidate> others;
  uint64_t workspace_bytes = 0;  // enough for each of them
};

// Every name that nvfp4_gemm_supported accepts for the problem, one for each different plan,
// without the planner's own.
Candidates list_candidates(const nvfp4_gemm_desc& problem, int32_t capability, int32_t sms);

// Runs each variant twice: on data whose sums are exact, where different bits are a bug and throw,
// and on random data.
void compare_bits(const support::Driver& driver, const RunOptions& problem, Candidates* candidates);

}  // namespace nvfp4_tool
