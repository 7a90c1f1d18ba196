// SPDX-License-Identifier: MIT
// Grouped products: this header checks their rules and plans their launch. checked.h and plan.h do
// the same for single products.
#pragma once

#include "host/plan/plan.h"

namespace nvfp4 {

struct CheckedGrouped {
  CheckedGemm gemm;  // l groups; A, C and D have no batches
  nvfp4_grouped_desc known{};
};

nvfp4_status check_grouped(const nvfp4_grouped_desc* desc, Caller caller, CheckedGrouped* checked);

// The variant depends on the sizes, rows_hint and desc.variant alone, never on the row counts in
// device memory. The grid has CTAs for the most tiles that any division of the rows can have.
nvfp4_status make_grouped_plan(const CheckedGrouped& checked, int32_t capability, Plan* plan);

}  // namespace nvfp4
