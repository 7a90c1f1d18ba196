// SPDX-License-Identifier: MIT
// A plan in numbers: nvfp4_plan_info.
#pragma once

#include "host/plan/family.h"
#include "host/plan/grouped.h"

namespace nvfp4 {

// Clock cycles of all kernels of a plan, D's epilogue included. 0: the family predicts none.
Clocks predicted_clocks(const nvfp4_gemm_desc& desc, const Plan& plan);

// Checks the caller's struct and number of SMs. `info` may hold anything beyond its struct_size.
nvfp4_status check_describe(int32_t sm_count, const nvfp4_plan_info* info);
nvfp4_status rule_sm_count(int32_t sm_count);

// Fills everything except struct_size.
nvfp4_plan_info describe_plan(const CheckedGemm& checked, const Plan& plan, int32_t sm_count);

// The same for a grouped product. Bytes and bounds count the weights of all groups. `tiles` is the
// largest number that any division of the rows can have. The time is not predicted.
nvfp4_plan_info describe_grouped(const CheckedGrouped& checked, const Plan& plan, int32_t sm_count);

// Copies to a struct of struct_size bytes. This library may know only the first bytes of it.
void copy_info(const nvfp4_plan_info& from, nvfp4_plan_info* info);

}  // namespace nvfp4
