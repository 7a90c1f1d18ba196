// SPDX-License-Identifier: MIT
// The CUDA driver: libcuda.so.1 opened at first use, its entry points in a table written once.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "host/status.h"

namespace nvfp4 {

struct Driver {
#define ENTRY(name, version) PFN_##name##_v##version name;
#include "host/driver.def"
#undef ENTRY
};

// The started driver, or why there is none. A failure is not remembered: the next call tries again.
nvfp4_status open_driver(const Driver** driver);

// A failed driver call as status and sentence. `call` is its name. Where the result itself says
// nothing better (context, memory, earlier work), the status is `otherwise`.
nvfp4_status driver_failure(const Driver& driver, const char* call, CUresult result,
                            nvfp4_status otherwise = NVFP4_STATUS_DRIVER_ERROR);

// The status that a result stands for, whoever returned it; `otherwise` for all others.
nvfp4_status status_of(CUresult result, nvfp4_status otherwise);

}  // namespace nvfp4
