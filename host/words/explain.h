// SPDX-License-Identifier: MIT
// A plan in words, and the command line that makes the problem again.
#pragma once

#include "host/plan/plan.h"

namespace nvfp4 {

constexpr size_t kReplayBytes = 1024;  // fifteen numbers of 20 digits and their names fit

// "nvfp4 run --m ...": sizes, and whatever else of the problem differs from the default. K > 0.
void write_replay(const nvfp4_gemm_desc& desc, char* text, size_t bytes);

// An NVFP4_ACTIVATION_ in that line: "gelu-tanh", for example.
const char* activation_word(int32_t activation);

nvfp4_status check_explain(int32_t sm_count, const char* buffer);

// Refuses a buffer that is too small, saying how many bytes it needs; what fits is in it even then.
nvfp4_status explain_gemm(const CheckedGemm& checked, const Plan& plan, int32_t capability,
                          int32_t sm_count, char* buffer, size_t bytes);

}  // namespace nvfp4
