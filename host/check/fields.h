// SPDX-License-Identifier: MIT
// The parts of check_gemm, a file each.
#pragma once

#include "host/check/check.h"

namespace nvfp4 {

// enums.cc: each enumerator is one of its enumeration, and there for this caller.
nvfp4_status check_enums(const nvfp4_gemm_desc& g, Caller caller);

// absent.cc: switches and reserved words have a legal value; what is not there is NULL, 0 or off.
nvfp4_status check_switches(const nvfp4_gemm_desc& g);
nvfp4_status check_absent(const nvfp4_gemm_desc& g);
nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x);

}  // namespace nvfp4
