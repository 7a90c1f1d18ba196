// SPDX-License-Identifier: MIT
// Does an instruction's operand list fit a row, and what are the operands then?
#pragma once

#include <string>
#include <vector>

#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/notation.h"
#include "tools/emulator/ptx/syntax.h"

namespace emu::ptx {

struct OperandError {
  SourcePos pos;
  std::string text;    // empty: all fit
  bool shape = false;  // a vector where the row has none, or the reverse: another row was meant
  bool tells_more_than(const OperandError& other) const {
    return pos.column != other.pos.column ? pos.column > other.pos.column : !shape;
  }
};

// `out` has its modifiers and types; its operands are appended.
OperandError fit_operands(const std::vector<Slot>& slots, const ParsedInstr& in, Instr& out);

// May a register of the declared type stand where the instruction's type is `want`?
bool compatible(Type declared, Type want, bool wider);

// How many registers a vector operand has: 2 for .v2, 64 for .16x256b.x16.
uint32_t vector_length(const Instr& in);

// The N and K of a wgmma.mma_async, 0 for everything else.
struct WgmmaShape {
  uint32_t n = 0, k = 0;
};
WgmmaShape wgmma_shape(const Instr& in);

// The state space in the instruction's modifiers, generic if there is none.
Space space_of(const Instr& in);

}  // namespace emu::ptx
