// SPDX-License-Identifier: MIT
// From a checked problem to a launch, in two halves: prepare once, enqueue any number of times.
#pragma once

#include "host/plan/family.h"
#include "host/plan/grouped.h"
#include "host/run/device.h"

namespace nvfp4 {

// A problem with its plan, its kernel and the kernel's parameter, for one compute capability.
struct PreparedGemm {
  KernelParams params;
  nvfp4_gemm_desc desc;
  Plan plan;
  LoadedKernel loaded;
  int32_t capability;
  bool empty;  // nothing to enqueue; only desc is valid
  bool gated;  // the problem has b2
};

// The problem must not be empty.
nvfp4_status prepare_gemm(const Site& site, const CheckedGemm& checked, PreparedGemm* prepared);

// The same for a grouped product.
nvfp4_status prepare_grouped(const Site& site, const CheckedGrouped& checked,
                             PreparedGemm* prepared);

// The arrays of a grouped plan's groups, as `params` has them.
GroupArrays group_arrays(const Plan& plan, const KernelParams& params);

// Replaces the addresses in `params` by new ones, which check_new_addresses has accepted. `groups`
// is NULL for a single product.
nvfp4_status replace_addresses(const Driver& driver, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& desc, const GroupArrays* groups,
                               KernelParams* params);

// Enqueues the kernel, or a fill if K = 0, on a stream of the current context. `desc` and
// `params` are those of `prepared`, possibly with other addresses.
nvfp4_status enqueue_gemm(const Site& site, const PreparedGemm& prepared,
                          const nvfp4_gemm_desc& desc, const KernelParams& params, void* stream);

}  // namespace nvfp4
