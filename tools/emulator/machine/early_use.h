// SPDX-License-Identifier: MIT
// Registers that an instruction uses while asynchronous work still owns them. Registers are the
// compiler's: ptxas lets the instruction wait for a tcgen05.ld as for any load (PTX ISA
// 9.7.16.6.4.5) and serialises wgmma ("wgmma.mma_async instructions are serialized due to ..",
// C7510 to C7520). So the work is completed first, and the missing wait is a finding of class
// formal. This holds for registers only: memory that the work reads is ordered by the wait alone.
#pragma once

#include "tools/emulator/machine/machine.h"

namespace emu {

// Called for every instruction while Warp::has_work_in_registers(). Step::blocked: try again later.
ptx::Step use_early(Warp& warp, const ptx::Instr& in, uint32_t active);

}  // namespace emu
