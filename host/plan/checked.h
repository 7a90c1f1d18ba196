// SPDX-License-Identifier: MIT
// A problem that breaks no rule of the header. Planning starts from it.
#pragma once

#include "host/plan/variant.h"
#include "host/problem/check.h"

namespace nvfp4 {

struct CheckedGemm {
  const nvfp4_gemm_desc* desc;  // the checked desc; check_gemm points it at `known`
  const Variant* forced;        // the variant that desc->variant names; NULL: the planner chooses
  bool empty;        // m, n or l is 0, so there is nothing to do and no pointer has been checked
  bool sizes_alone;  // every address is NULL, so the rules about addresses were skipped
  uint32_t forced_split = 0;  // K partitions that desc->variant names; 0: the planner chooses
  bool forced_apart = false;  // desc->variant asks for a D that is made apart (apart.h)
  nvfp4_gemm_desc known{};    // the caller's desc; fields beyond its struct_size are 0
};

// Takes what desc.variant asks for.
nvfp4_status take_variant(const nvfp4_gemm_desc& desc, CheckedGemm* checked);

// Checks every rule in the header's order. Either fills `checked` or refuses with a status and a
// message.
nvfp4_status check_gemm(const nvfp4_gemm_desc* desc, Caller caller, CheckedGemm* checked);

}  // namespace nvfp4
