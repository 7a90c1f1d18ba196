// SPDX-License-Identifier: MIT
// The timer that `nvfp4 tune` uses, by the names that the bench has for it.
#pragma once

#include "tools/harness/gpu_timer.h"

namespace bench {

using support::GpuTimer;
using support::Launch;
using support::Series;

}  // namespace bench
