// SPDX-License-Identifier: MIT
// Copies bytes together with the record of which of them have a value. Some bytes of global memory
// have none (memory/blank_bytes.h).
#pragma once

#include "tools/emulator/driver/state.h"

namespace emu::driver {

struct End {
  uint8_t* bytes;
  CUdeviceptr device;  // 0: on the host
};

// On the host a byte without a value is an error, as EMU_HAZARDS says; elsewhere it is copied.
CUresult copy_values(State& s, const End& to, const End& from, size_t bytes);

}  // namespace emu::driver
