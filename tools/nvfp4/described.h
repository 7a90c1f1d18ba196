// SPDX-License-Identifier: MIT
// A command's options as the library's descriptor.
#pragma once

#include "nvfp4_gemm.h"
#include "tools/harness/groups.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

// Sizes and strides as `run` arranges them, without memory. The addresses are checked but never
// read, and are so far apart that nothing overlaps.
nvfp4_gemm_desc describe(const RunOptions& options);

// The number of groups that --groups names, the rows of A and D, and their division.
int64_t group_count(const RunOptions& options);
int64_t all_rows(const RunOptions& options);
support::Groups groups_of(const RunOptions& options);

// The same as describe() of a grouped product, whose descriptor is in `gemm`.
nvfp4_grouped_desc describe_groups(const RunOptions& options, nvfp4_gemm_desc* gemm);

// With the variant that a B200 would take, where --allow-unproven asks for one and no plan for that
// compute capability takes its kernels unasked. The options otherwise.
RunOptions with_variant(RunOptions options, int32_t capability);

}  // namespace nvfp4_tool
