// SPDX-License-Identifier: MIT
// How a kernel for 10.x stores D: by TMA in boxes of 32 x 32, or by threads.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/plan.h"
#include "kernel/sm100/params.h"

namespace nvfp4 {

// NULL if the kernel stores such a D by TMA, otherwise a few words on why it cannot.
const char* why_not_by_tma(const nvfp4_gemm_desc& desc, const Plan& plan);

// Sets d_by_tma of the parameters, and the map if it is 1.
nvfp4_status set_d_store(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                         Sm100Params* params);

}  // namespace nvfp4
