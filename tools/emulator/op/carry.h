// SPDX-License-Identifier: MIT
// The forms of add, sub and mad with .cc, which write the carry flag. The binders of add, sub and
// mad use them.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

Exec add_cc(const Instr& in);
Exec sub_cc(const Instr& in);
Exec mad_cc(const Instr& in);

}  // namespace emu::ops
