// SPDX-License-Identifier: MIT
// How D leaves a kernel for 10.x: by TMA, in boxes of 32 x 32, or by stores of threads.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/plan.h"
#include "kernel/sm100/params.h"

namespace nvfp4 {

// NULL where the kernel stores such a D by TMA; else what keeps it from that, in a few words.
const char* why_not_by_tma(const nvfp4_gemm_desc& desc, const Plan& plan);

// d_by_tma of the parameters, and the map where it is 1.
nvfp4_status set_d_store(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                         Sm100Params* params);

}  // namespace nvfp4
