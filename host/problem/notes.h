// SPDX-License-Identifier: MIT
// Log lines (level 2) about calls that succeed, but do nothing or multiply by 0: often a field was
// forgotten. Each begins with "note: ".
#pragma once

#include "host/problem/check.h"

namespace nvfp4 {

// A product whose m, n or l is 0.
void note_empty(const nvfp4_gemm_desc& g);
// A function that gets a matrix without rows or columns.
void note_empty_matrix(const char* function, int64_t rows, int64_t k);
// Factors of 0 by value, and groups that use one B.
void note_values(const nvfp4_gemm_desc& g, const GroupArrays* groups);

}  // namespace nvfp4
