// SPDX-License-Identifier: MIT
// The kernel images: which one serves a device, loaded once per process.
#pragma once

#include "host/driver.h"
#include "host/plan/plan.h"

namespace nvfp4 {

struct LoadedKernel {
  CUkernel kernel;
  CUkernel tokens;    // decodes tokens into the workspace; NULL where the variant needs none
  const char* image;  // its label in images.def
};

// The plan's kernel for the current device. Loads at the first call; a failure is not remembered.
nvfp4_status load_kernel(const Driver& driver, const Plan& plan, LoadedKernel* loaded);

const char* image_label(uint32_t image);  // of an ImageIndex

}  // namespace nvfp4
