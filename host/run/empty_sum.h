// SPDX-License-Identifier: MIT
// K = 0: D without a product.
#pragma once

#include "host/run/device.h"
#include "kernel/common/groups.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Fills D if every element is the same fp16 number, otherwise launches a kernel; `how` says which,
// in one word. `groups` is NULL for a single product.
nvfp4_status enqueue_empty_sum(const Site& site, const nvfp4_gemm_desc& desc,
                               const GroupParams* groups, CUstream stream, const char** how);

// That word for a problem with K = 0: "fill" or "empty_sum".
const char* empty_sum_way(const nvfp4_gemm_desc& desc, bool grouped);

}  // namespace nvfp4
