// SPDX-License-Identifier: MIT
// What atom, red, red.async and cp.reduce.async do to one word.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

// The new value of a word from the old one and the operands (c: of .cas only).
using Update = uint64_t (*)(uint64_t old, uint64_t b, uint64_t c);

// The update that an instruction's modifiers name, on words of `type`; nullptr if there is none.
// `in_global`: atom.add.f32 flushes subnormals in global memory and keeps them in shared memory
// (PTX ISA, atom).
Update reduction_of(const Instr& in, Type type, bool in_global);

// Updates a word of 1, 2, 4 or 8 bytes that other host threads may update, too; returns the old
// one.
uint64_t update_global(uint8_t* host, uint32_t bytes, Update f, uint64_t b, uint64_t c = 0);

}  // namespace emu::ops
