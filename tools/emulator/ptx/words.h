// SPDX-License-Identifier: MIT
// Words that need a version or a target wherever they stand (words.def).
#pragma once

#include "tools/emulator/ptx/cursor.h"
#include "tools/emulator/ptx/target.h"

namespace emu::ptx {

// All from the cursor on. Throws PtxError.
void check_words(Cursor at, const Target& target);

}  // namespace emu::ptx
