// SPDX-License-Identifier: MIT
// add.cc, sub.cc and mad.cc, for the binders of add, sub and mad.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

Exec add_cc(const Instr& in);
Exec sub_cc(const Instr& in);
Exec mad_cc(const Instr& in);

}  // namespace emu::ops
