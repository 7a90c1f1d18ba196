// SPDX-License-Identifier: MIT
// add.f32.f16 and its relatives.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

// Two types, the second narrower.
inline bool is_mixed(const Instr& in) { return in.type_count == 2; }
Exec mixed_add(const Instr& in);
Exec mixed_sub(const Instr& in);
Exec mixed_fma(const Instr& in);

}  // namespace emu::ops
