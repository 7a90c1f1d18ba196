// SPDX-License-Identifier: MIT
// A plan in numbers: nvfp4_plan_info.
#pragma once

#include "host/plan/grouped.h"

namespace nvfp4 {

// The caller's structure and number of SMs. `info` may hold anything beyond its struct_size.
nvfp4_status check_describe(int32_t sm_count, const nvfp4_plan_info* info);
nvfp4_status rule_sm_count(int32_t sm_count);

// Everything but struct_size.
nvfp4_plan_info describe_plan(const CheckedGemm& checked, const Plan& plan, int32_t sm_count);

// The same of a grouped product; bytes and light of all groups' weights, and tiles the most that
// any division of the rows has. Its time is not predicted.
nvfp4_plan_info describe_grouped(const CheckedGrouped& checked, const Plan& plan, int32_t sm_count);

// Into a structure of struct_size bytes, of which this library may know the first ones alone.
void copy_info(const nvfp4_plan_info& from, nvfp4_plan_info* info);

}  // namespace nvfp4
