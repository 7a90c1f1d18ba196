// SPDX-License-Identifier: MIT
// What ptxas refuses although the notation of opcodes.def admits it: ranges of constants, mostly.
#pragma once

#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/syntax.h"

namespace emu::ptx {

// Throws PtxError.
void check_rules(const ParsedInstr& in, const Instr& instr);

}  // namespace emu::ptx
