// SPDX-License-Identifier: MIT
// From a checked problem to one launch, in two halves: prepare once, enqueue as often as wanted.
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
  bool empty;  // nothing to enqueue; only desc holds
};

// For a problem that is not empty.
nvfp4_status prepare_gemm(const Site& site, const CheckedGemm& checked, PreparedGemm* prepared);

// The same of a grouped product.
nvfp4_status prepare_grouped(const Site& site, const CheckedGrouped& checked,
                             PreparedGemm* prepared);

// New addresses in place of those that `params` was made for.
nvfp4_status replace_addresses(const Driver& driver, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& desc, KernelParams* params);

// Enqueues the kernel, or a fill where K = 0, on a stream of the current context. `desc` and
// `params` are those of `prepared`, or the same with other addresses.
nvfp4_status enqueue_gemm(const Site& site, const PreparedGemm& prepared,
                          const nvfp4_gemm_desc& desc, const KernelParams& params, void* stream);

}  // namespace nvfp4
