// SPDX-License-Identifier: MIT
// Where a call runs: the current context's device, and what the library remembers of it.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/plan.h"
#include "host/run/image.h"

namespace nvfp4 {

struct Site {
  const Driver* driver;
  CUcontext context;
  CUdevice device;
  int32_t capability;  // 10 * major + minor
  int32_t sm_count;
};

// Opens the driver if need be. Asked anew at each call: threads and contexts come and go.
nvfp4_status find_site(Site* site);

// The plan's kernel, loaded, with the shared memory that it wants on the site's device.
nvfp4_status ready_kernel(const Site& site, const Plan& plan, LoadedKernel* loaded);

// A kernel's code in the current context, which the driver otherwise leaves to the first launch.
nvfp4_status load_into_context(const Driver& driver, CUkernel kernel);

// Every variant's kernel, with its code in the current context.
nvfp4_status ready_all_kernels(const Site& site);

}  // namespace nvfp4
