// SPDX-License-Identifier: MIT
// Which variants the library would run for a problem, and whether their D has the bits of the
// planner's choice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

struct Candidate {
  std::string name;        // as desc.variant has it
  bool same_bits = false;  // as the planner's choice, on random data, D in fp32
};

struct Candidates {
  std::string planned;  // the planner's choice, as a reader wants it: "sm90_64x16x256, split 2"
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
