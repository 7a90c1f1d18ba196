// SPDX-License-Identifier: MIT
// The kernel images: which one serves a device, loaded once per process.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/plan.h"

namespace nvfp4 {

struct LoadedKernel {
  CUkernel kernels[kEntryCount];  // NULL where the variant has none
  CUkernel tokens;    // decodes tokens into the workspace; NULL where the variant needs none
  CUkernel add;       // adds K partitions from the workspace; NULL where none meet there
  const char* image;  // its label in images.def
};

// The plan's kernel for the current device. Loads at the first call; a failure is not remembered.
nvfp4_status load_kernel(const Driver& driver, const Plan& plan, LoadedKernel* loaded);

// The kernels of the quantizer, by index into quantizer_entries.def.
enum QuantizerEntry : uint32_t {
#define QUANTIZER_ENTRY(name) kQuantizer_##name,
#include "host/run/quantizer_entries.def"
#undef QUANTIZER_ENTRY
  kQuantizerEntryCount
};
nvfp4_status load_quantizer(const Driver& driver, uint32_t arch_index, QuantizerEntry entry,
                            CUkernel* kernel);

// The oldest driver, as cuDriverGetVersion counts, that any image can be loaded by; most ask for a
// newer one, which loading looks at.
int oldest_driver();

const char* image_label(uint32_t image);  // of an ImageIndex

}  // namespace nvfp4
