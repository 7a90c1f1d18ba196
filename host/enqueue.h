// SPDX-License-Identifier: MIT
// One kernel onto a stream of the current context.
#pragma once

#include "host/device.h"

namespace nvfp4 {

struct Grid {
  uint32_t ctas, rows;  // grid.x and grid.y
  uint32_t threads, shared_bytes;
  uint32_t cluster;  // CTAs
  bool early;        // may start before earlier work of the stream has ended, for which it waits
};

// `params` is the kernel's only parameter; it is read before the call returns.
nvfp4_status launch(const Site& site, CUkernel kernel, const Grid& grid, const void* params,
                    CUstream stream);

// False where the driver does not say: then it decides about the work itself.
bool is_of_another_context(const Site& site, CUstream stream);
nvfp4_status refuse_stream(CUstream stream);

}  // namespace nvfp4
