// SPDX-License-Identifier: MIT
// A grid with all who watch it: the ordering checks and the time line.
#pragma once

#include <vector>

#include "tools/emulator/machine/machine.h"

namespace emu {

class GlobalOrder;

// run_grid() with them. `order` has what the launch accessed, nullptr: no check asks later.
// `earlier`: of the grids ahead that may still run.
Counters run_watched(Launch launch, GlobalOrder* order = nullptr,
                     const std::vector<GlobalOrder*>& earlier = {});

}  // namespace emu
