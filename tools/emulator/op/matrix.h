// SPDX-License-Identifier: MIT
// Forms of ldmatrix and stmatrix whose elements are bytes or smaller; nullptr: it is none.
#pragma once

#include "tools/emulator/op/op.h"

namespace emu::ops {

Exec load_bytes_matrix(const Instr& in);
Exec store_bytes_matrix(const Instr& in);

}  // namespace emu::ops
