// SPDX-License-Identifier: MIT
// Why instructions that move data found no value, or left none: told to the instruction that needs
// it later.
#pragma once

#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

// What a load says that found none in these bytes of what it opened.
Reason why_loaded_none(const Instr& in, const Bytes& from, uint32_t at, uint32_t bytes);

// What a store of a register without a value says: what was there is gone, and whichever
// instruction needs it is told of the store.
std::string why_stored_none(const Warp& w, const Instr& in, const Operand& op, const Place& p,
                            uint32_t lanes);

}  // namespace emu::ops
