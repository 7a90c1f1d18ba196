// SPDX-License-Identifier: MIT
// See tensor_access.h.
#include "tools/emulator/hardware/tensor_access.h"

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/tensor_memory.h"

namespace emu {

uint32_t access_lane(AccessShape shape, uint32_t address, uint32_t warp, const char* who) {
  const uint32_t quarter = 32 * (warp % 4);
  const uint32_t lane =
      TensorMemory::lane_of(address) + (names_no_quarter(address, warp) ? quarter : 0);
  const bool half = shape != AccessShape::s32x32b;  // 16 lanes: either half of the quarter
  if (lane == quarter || (half && lane == quarter + 16)) return lane;
  throw Fault(
      FaultKind::illegal_instruction,
      format("%s at tensor memory address 0x%08x (lane %u): warp %u of the CTA reaches lanes "
             "%u to %u and starts at lane %u%s",
             who, address, lane, warp, quarter, quarter + 31, quarter, half ? " or 16 after" : ""));
}

bool names_no_quarter(uint32_t address, uint32_t warp) {
  return warp % 4 != 0 && TensorMemory::lane_of(address) < 32;
}

}  // namespace emu
