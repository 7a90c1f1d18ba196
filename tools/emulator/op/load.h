// SPDX-License-Identifier: MIT
// The PTX front end and the functions that execute its instructions, put together.
#pragma once

#include <memory>
#include <string_view>

#include "tools/emulator/ptx/module.h"

namespace emu::ops {

// PTX text to a module that the machine executes: ptx::load with the binders of binders.h.
std::unique_ptr<ptx::Module> load(std::string_view text, int compute_capability,
                                  ptx::Reading reading = ptx::Reading::now);

}  // namespace emu::ops
