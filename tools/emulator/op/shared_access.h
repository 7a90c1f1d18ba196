// SPDX-License-Identifier: MIT
// ld and st of all lanes at once, where they are ordinary accesses to the CTA's own shared memory,
// or to one allocation of global memory, and nothing about them is a Fault. False: nothing was
// done, and memory.cc goes lane by lane.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

bool load_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words);
bool load_global_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words,
                          Use use);
bool store_global_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes,
                           uint32_t words);
bool store_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words);

}  // namespace emu::ops
