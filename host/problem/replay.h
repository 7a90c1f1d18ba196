// SPDX-License-Identifier: MIT
// The command line that reproduces a problem.
#pragma once

#include <cstddef>

#include "nvfp4_gemm.h"

namespace nvfp4 {

constexpr size_t kReplayBytes = 1024;  // fits fifteen numbers of 20 digits and their names

// Writes "nvfp4 run --m ...": the sizes, and everything else that differs from the defaults.
void write_replay(const nvfp4_gemm_desc& desc, char* text, size_t bytes);

}  // namespace nvfp4
