// SPDX-License-Identifier: MIT
// The kernel images: which one serves a device. Each is loaded once per process.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/plan.h"

namespace nvfp4 {

struct LoadedKernel {
  CUkernel kernels[kOperationCount];  // NULL where the variant has none
  CUkernel tokens;                    // the activation pre-pass; NULL if the variant needs none
  CUkernel group_tokens;              // the same of grouped products
  CUkernel add;       // adds K partitions from the workspace; NULL if none meet there
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
// Whether the architecture's images have it.
bool has_quantizer_entry(uint32_t arch_index, QuantizerEntry entry);

// The oldest driver that can load any image. Most images need a newer one, which loading checks.
int oldest_driver();

const char* image_label(uint32_t image);  // label of an ImageIndex

// Whether the library has an image, and for which compute capabilities it was built: "all", or
// numbers as GPUS of the Makefile has them.
bool has_image(uint32_t image);
bool has_quantizer(uint32_t image);
bool has_image_for(const Architecture& arch, const Family* family);
const char* gpus_of_images();

// Refuses a GPU for which the library was built without images.
nvfp4_status refuse_gpu(int32_t capability);

// The oldest driver, as cuDriverGetVersion counts, that loads an image, and that loads any image of
// the architecture's first family. INT_MAX if the library has none.
int driver_for_image(uint32_t image);
int driver_for_row(const Architecture& arch);

// The images of the quantizer: how many, the label of each, and the oldest driver that loads it.
uint32_t quantizer_images();
const char* quantizer_label(uint32_t image);
int driver_for_quantizer(uint32_t image);

}  // namespace nvfp4
