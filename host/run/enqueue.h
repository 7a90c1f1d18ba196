// SPDX-License-Identifier: MIT
// Launches one kernel on a stream of the current context.
#pragma once

#include "host/run/device.h"

namespace nvfp4 {

struct Grid {
  uint32_t ctas, rows;  // grid.x and grid.y
  uint32_t threads, shared_bytes;
  uint32_t cluster;  // CTAs per cluster
  bool early;        // may start before earlier work of the stream ends; the kernel waits for it
};

// `params` is the kernel's only parameter; it is read before the call returns.
nvfp4_status launch(const Site& site, CUkernel kernel, const Grid& grid, const void* params,
                    CUstream stream);

// Refuses a stream that belongs to another context than the current one. The driver accepts both
// the launch of a CUkernel there (H200, driver 580) and a fill. If the driver does not say which
// context the stream belongs to, the driver itself accepts or refuses the work.
nvfp4_status check_stream(const Site& site, CUstream stream);

}  // namespace nvfp4
