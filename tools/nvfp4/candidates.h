// SPDX-License-Identifier: MIT
// Which variants the library would run for a problem, what its planner says of each, and whether
// their D has the bits of the planner's choice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// A plan as nvfp4_gemm_describe tells it.
struct PlanSummary {
  std::string variant;
  int64_t split = 1, whole = 0, ctas = 0;  // whole: of the tiles, those that no CTAs share
  double predicted_us = 0;                 // 0: by no time does the planner choose
};

struct Candidate {
  std::string name;  // as desc.variant has it
  PlanSummary plan;
  bool same_bits = false;  // as the planner's choice, on random data, D in fp32
};

struct Candidates {
  std::string planned;  // the planner's choice, as a reader wants it: "sm90_64x16x256, split 2"
  PlanSummary choice;   // the same
  std::vector<Candidate> others;
  uint64_t workspace_bytes = 0;  // enough for each
};

// Every name that nvfp4_gemm_supported takes for it, one for each different plan, without the
// planner's own.
Candidates list_candidates(const nvfp4_gemm_desc& problem, int32_t capability, int32_t sms);

// Runs each twice: on data whose sums are exact, where other bits are a bug and thrown, and on
// random data.
void compare_bits(const support::Driver& driver, const RunOptions& problem, Candidates* candidates);

}  // namespace nvfp4_tool
