// SPDX-License-Identifier: MIT
// Control flow of one function: where diverged lanes meet again.
#pragma once

#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

// For each instruction, and one more at the end: does a basic block begin there?
std::vector<bool> block_starts(const std::vector<Instr>& code);

// Sets Instr::reconverge of every branch to the first instruction that is reached by all lanes that
// have not ended before it. This is the immediate post-dominator in the graph without the edges on
// which lanes end.
//
// A guarded ret or exit therefore is no way out for those who stay, and neither is a branch to a
// block that only returns (nvcc makes `@p bra $L_end; ... $L_end: ret;` of an early return): the
// lanes that stay meet again after it. With the textbook graph they would meet at $L_end, and
// every collective instruction in between would find the warp in pieces.
void set_reconvergence(Function& function);

}  // namespace emu::ptx
