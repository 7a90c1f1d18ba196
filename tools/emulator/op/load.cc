// SPDX-License-Identifier: MIT
// See load.h.
#include "tools/emulator/op/load.h"

#include "tools/emulator/op/binders.h"

namespace emu::ops {

std::unique_ptr<ptx::Module> load(std::string_view text, int compute_capability,
                                  ptx::Reading reading) {
  static constexpr ptx::Binder binders[] = {
#define OPCODE(name, text) &bind_##name,
#define FORM(since, text)
#include "tools/emulator/ptx/opcodes.def"
#undef OPCODE
#undef FORM
      &bind_call, &bind_landing, &bind_leave, &bind_system,  // ptx::Inner
  };
  return ptx::load(text, compute_capability, binders, reading);
}

}  // namespace emu::ops
