// SPDX-License-Identifier: MIT
// Why instructions that move data found no value, or left none: told to the instruction that needs
// it later.
#pragma once

#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

// Why a register has no value after a load: the load read these bytes, which have none.
Reason why_loaded_none(const Instr& in, const Bytes& from, uint32_t at, uint32_t bytes);

// Why bytes have no value after a store: the register had none. The old value is lost, and the
// report on an instruction that needs the bytes later names the store.
std::string why_stored_none(const Warp& w, const Instr& in, const Operand& op, const Place& p,
                            uint32_t lanes);

}  // namespace emu::ops
