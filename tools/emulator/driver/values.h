// SPDX-License-Identifier: MIT
// Bytes with what is known of them: some of global memory have no value (memory/blank_bytes.h).
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
