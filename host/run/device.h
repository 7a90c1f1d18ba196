// SPDX-License-Identifier: MIT
// Where a call runs: the device of the current context, and what the library remembers about it.
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
  // Row of kArchitectures: the first of the capability whose own images the driver can load. If it
  // can load none, the capability's first; kArchitectureCount if the capability has no row.
  uint32_t arch_index;
};

// The site's row of kArchitectures; refuses a capability that has none.
nvfp4_status site_architecture(const Site& site, uint32_t* index);

// Opens the driver if necessary. Queried anew at each call, because threads and contexts come and
// go.
nvfp4_status find_site(Site* site);

// Loads the plan's kernel and requests its shared memory on the site's device.
nvfp4_status ready_kernel(const Site& site, const Plan& plan, LoadedKernel* loaded);

// Number of SMs that the grid of a plan should fill, once its kernel is ready. It is that of the
// device. If clusters take one tile after the other, it is that of the clusters that run at once.
// For devices beyond the first 64 it is always that of the device.
int32_t sms_at_once(const Site& site, const Plan& plan);

// Loads a kernel's code into the current context; otherwise the driver does that at the first
// launch.
nvfp4_status load_into_context(const Driver& driver, CUkernel kernel);

// Loads the kernel of every variant, with its code, into the current context.
nvfp4_status ready_all_kernels(const Site& site);

}  // namespace nvfp4
