// SPDX-License-Identifier: MIT
// A plan in words.
#pragma once

#include "host/plan/grouped.h"

namespace nvfp4 {

nvfp4_status check_explain(int32_t sm_count, const char* buffer);

// Refuses a buffer that is too small and says how many bytes it needs; the buffer still gets as
// much text as fits.
nvfp4_status explain_gemm(const CheckedGemm& checked, const Plan& plan, int32_t capability,
                          int32_t sm_count, char* buffer, size_t bytes);

nvfp4_status explain_grouped(const CheckedGrouped& checked, const Plan& plan, int32_t capability,
                             int32_t sm_count, char* buffer, size_t bytes);

}  // namespace nvfp4
