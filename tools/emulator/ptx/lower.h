// SPDX-License-Identifier: MIT
// A parsed instruction to an executable one: names to slots, form, binder.
#pragma once

#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/symbols.h"
#include "tools/emulator/ptx/syntax.h"
#include "tools/emulator/ptx/target.h"

namespace emu::ptx {

// Appends the instruction to `function`; a branch's label is noted in `scopes`. `binders` has one
// for each opcode of the table. Throws PtxError.
void lower(ParsedInstr& in, Scopes& scopes, const Target& target, const Binder* binders,
           Function& function);

void set_guard(const ParsedInstr& in, const Scopes& scopes, Instr& out);

// One cta_group per function (PTX ISA 9.7.16.5; ptxas refuses a mixture).
void check_cta_group(const Function& function);

}  // namespace emu::ptx
