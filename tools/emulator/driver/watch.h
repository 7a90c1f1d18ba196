// SPDX-License-Identifier: MIT
// A grid with all who watch it: the ordering checks and the time line.
#pragma once

#include <vector>

#include "tools/emulator/machine/machine.h"

namespace emu {

class GlobalOrder;

// run_grid() with them. `order` receives the accesses of the launch; nullptr if no later check
// needs them. `earlier` has the accesses of the grids ahead that may still run.
Counters run_watched(Launch launch, GlobalOrder* order = nullptr,
                     const std::vector<GlobalOrder*>& earlier = {});

}  // namespace emu
