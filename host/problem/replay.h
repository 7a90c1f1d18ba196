// SPDX-License-Identifier: MIT
// The command line that reproduces a problem.
#pragma once

#include <cstddef>

#include "nvfp4_gemm.h"

namespace nvfp4 {

constexpr size_t kReplayBytes = 1024;  // fits fifteen numbers of 20 digits and their names

// Writes "nvfp4 run --m ...": the sizes, and everything else that differs from the defaults.
void write_replay(const nvfp4_gemm_desc& desc, char* text, size_t bytes);

// The same of a grouped product. The rows of its groups are in device memory, so the line divides
// all rows evenly, or gives each group as many as it has room for.
void write_grouped_replay(const nvfp4_grouped_desc& grouped, const nvfp4_gemm_desc& gemm,
                          char* text, size_t bytes);

}  // namespace nvfp4
