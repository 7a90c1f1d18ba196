// SPDX-License-Identifier: MIT
// Where .shared variables lie.
#pragma once

#include <string_view>
#include <vector>

#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

// The variables one function may name: first those of the module, then its own, each in declaration
// order. Until place() is called, Symbol::index and Operand::variable are indices of this list.
//
// ptxas 13.0 (read off the SASS and `-v` of probes) places from address 0x400 upward, each variable
// at its alignment: the module's variables that the function names, then all of the function's own;
// dynamic memory (.extern .shared) begins after them at its own alignment.
struct SharedLayout {
  struct Variable {
    std::string_view name;
    uint32_t align = 1;
    uint64_t bytes = 0;
    bool dynamic = false;  // .extern
    bool named = false;    // used by an operand, or the function's own: gets an address
    uint32_t address = 0;
  };
  std::vector<Variable> variables;

  // Gives addresses, sets the function's sizes, and turns Operand::variable of all shared operands
  // into addresses. Throws PtxError if they exceed what a 24-bit address can name.
  void place(Function& function, SourcePos pos);
};

}  // namespace emu::ptx
