// SPDX-License-Identifier: MIT
// Which registers of a function share a slot.
#pragma once

#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

// Compilers number a register for each value, thousands of them, so that the slots of a warp would
// not fit a host's cache. A register that lives in one basic block takes the slot of another whose
// last use is over: its first access writes all lanes that execute the block, so none finds what
// another register has left. All others keep slots of their own, and so do those that work owns
// after its instruction (wgmma, tcgen05). Functions with routines are left as they are, whose
// activations save ranges of slots.
void share_slots(Function& function);

}  // namespace emu::ptx
