// SPDX-License-Identifier: MIT
// One binder per opcode of ptx/opcodes.def: it looks at an instruction of a form that the table
// admits and returns the function that executes it, or nullptr and a sentence why the machine does
// not.
#pragma once

#include <string>

#include "tools/emulator/ptx/module.h"

namespace emu::ops {

#define OPCODE(name, text) ptx::Exec bind_##name(const ptx::Instr& in, std::string& why);
#define FORM(since, text)
#include "tools/emulator/ptx/opcodes.def"
#undef OPCODE
#undef FORM

// Binders of ptx::Inner.
ptx::Exec bind_call(const ptx::Instr& in, std::string& why);
ptx::Exec bind_landing(const ptx::Instr& in, std::string& why);
ptx::Exec bind_leave(const ptx::Instr& in, std::string& why);
ptx::Exec bind_system(const ptx::Instr& in, std::string& why);

}  // namespace emu::ops
