// SPDX-License-Identifier: MIT
// A problem that breaks no rule of the header: what planning starts from.
#pragma once

#include "host/plan/variant.h"
#include "host/problem/check.h"

namespace nvfp4 {

struct CheckedGemm {
  const nvfp4_gemm_desc* desc;  // `known`, after check_gemm: what is checked here is not copied
  const Variant* forced;        // the one that desc->variant names; NULL: the planner chooses
  bool empty;        // m, n or l is 0: there is nothing to do, and no pointer has been looked at
  bool sizes_alone;  // a question without any address: rules about those have been skipped
  uint32_t forced_split = 0;  // K partitions that desc->variant names; 0: the planner chooses
  nvfp4_gemm_desc known{};    // the caller's, with 0 for fields that it is too short to have
};

// Checks every rule in the header's order. Refuses with a status and a sentence, or fills
// `checked`.
nvfp4_status check_gemm(const nvfp4_gemm_desc* desc, Caller caller, CheckedGemm* checked);

}  // namespace nvfp4
